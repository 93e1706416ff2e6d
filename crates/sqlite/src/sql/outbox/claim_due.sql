-- What was set aside in the lanes ?1 and is due at ?3, without the ids ?2 and the sinks ?6: the first ?4
-- heads, of which each sink of each lane has a share. Of a key, only the first that holds it is a head; it brings
-- those that wait behind it, up to ?5 and to the next that holds the key or is under way. What was delayed may have
-- to wait, too, but that is not known here.
-- Served by aside_due_sink, which also tells which sinks have something waiting in a lane; aside_key, and the keys
-- of aside and message.
WITH RECURSIVE waiting (lane, sink) AS (
    SELECT wanted.value, (
        SELECT min(sink) FROM aside WHERE lane = wanted.value AND state IN ('retry', 'later')
    )
    FROM json_each(?1) AS wanted
    UNION ALL
    SELECT waiting.lane, (
        SELECT min(aside.sink)
        FROM aside
        WHERE aside.lane = waiting.lane AND aside.sink > waiting.sink AND aside.state IN ('retry', 'later')
    )
    FROM waiting
    WHERE waiting.sink IS NOT NULL
),
open AS MATERIALIZED (
    SELECT lane, sink
    FROM waiting
    WHERE sink NOT IN (SELECT value FROM json_each(?6)) AND EXISTS (
        SELECT 1
        FROM aside
        WHERE aside.lane = waiting.lane AND aside.sink = waiting.sink AND aside.state IN ('retry', 'later')
            AND aside.due_ms <= ?3
    )
),
share (heads) AS MATERIALIZED (
    SELECT max(2 * ?4 / max(count(*), 1), 16) FROM open
),
head AS MATERIALIZED (
    SELECT aside.id, aside.lane, aside.sink, aside.key_hash, aside.state
    FROM open
    CROSS JOIN json_each((
        SELECT json_group_array(due.id)
        FROM (
            SELECT aside.id
            FROM aside INDEXED BY aside_due_sink
            WHERE aside.lane = open.lane AND aside.sink = open.sink AND aside.state IN ('retry', 'later')
                AND aside.due_ms <= ?3
                AND aside.id NOT IN (SELECT value FROM json_each(?2))
                AND (aside.state = 'later' OR aside.key_hash IS NULL OR NOT EXISTS (
                    SELECT 1
                    FROM aside AS before
                    WHERE before.lane = aside.lane AND before.sink = aside.sink
                        AND before.key_hash = aside.key_hash AND before.holds = 1 AND before.id < aside.id
                ))
            ORDER BY aside.due_ms, aside.id
            LIMIT (SELECT heads FROM share)
        ) AS due
    )) AS chosen
    CROSS JOIN aside ON aside.id = chosen.value
    ORDER BY chosen.key, aside.due_ms, aside.id
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
            LIMIT 1 OFFSET (SELECT max(min(?5, 4 * ?4 / max(count(head.key_hash), 1)), 1) FROM head) - 1
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
