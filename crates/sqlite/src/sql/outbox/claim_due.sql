-- What was set aside in the lanes ?1 and is due at ?3, without the ids ?2 and the sinks ?6: the first ?4
-- heads. Of a key, only the first that holds it is a head; it brings those that wait behind it, up to ?5
-- and to the next that holds the key or is under way. What was delayed may have to wait, too, but that is
-- not known here.
-- Served by aside_due, aside_key, and the keys of aside and message.
WITH head AS MATERIALIZED (
    SELECT aside.id, aside.lane, aside.sink, aside.key_hash, aside.state
    FROM json_each(?1) AS wanted
    CROSS JOIN aside ON aside.lane = wanted.value
    WHERE aside.state IN ('retry', 'later') AND aside.due_ms <= ?3
        AND aside.id NOT IN (SELECT value FROM json_each(?2))
        AND aside.sink NOT IN (SELECT value FROM json_each(?6))
        AND (aside.state = 'later' OR aside.key_hash IS NULL OR NOT EXISTS (
            SELECT 1
            FROM aside AS before
            WHERE before.lane = aside.lane AND before.sink = aside.sink
                AND before.key_hash = aside.key_hash AND before.holds = 1 AND before.id < aside.id
        ))
    ORDER BY aside.due_ms, aside.id
    LIMIT ?4
),
first AS MATERIALIZED (
    SELECT head.id, head.lane, head.sink, head.key_hash,
        coalesce((
            SELECT last.id
            FROM aside AS last
            WHERE last.lane = head.lane AND last.sink = head.sink
                AND last.key_hash = head.key_hash AND last.holds = 1 AND last.id > head.id
            ORDER BY last.id
            LIMIT 1 OFFSET ?5 - 1
        ), 9223372036854775807) AS last
    FROM head
    WHERE head.state = 'retry' AND head.key_hash IS NOT NULL
),
line (id) AS (
    SELECT head.id FROM head
    UNION ALL
    SELECT behind.id
    FROM first
    CROSS JOIN aside AS behind
        ON behind.lane = first.lane AND behind.sink = first.sink
        AND behind.key_hash = first.key_hash
    WHERE behind.holds = 1 AND behind.id > first.id AND behind.id <= first.last
        AND behind.id < coalesce((
            SELECT next.id
            FROM aside AS next
            WHERE next.lane = first.lane AND next.sink = first.sink
                AND next.key_hash = first.key_hash AND next.holds = 1 AND next.id > first.id
                AND next.id <= first.last AND (
                    +next.state <> 'behind' OR next.id IN (SELECT value FROM json_each(?2))
                )
            ORDER BY next.id
            LIMIT 1
        ), 9223372036854775807)
)
SELECT line.id, aside.attempts, aside.sink, aside.state,
    length(message.payload) AS bytes
FROM line
CROSS JOIN aside ON aside.id = line.id
CROSS JOIN message ON message.id = line.id
ORDER BY line.id
