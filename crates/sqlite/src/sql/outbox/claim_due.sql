-- What was set aside in the lanes ?1 and is due at ?3, without the ids ?2 and the sinks ?6: the first ?4
-- heads, each with the first ?5 that wait behind it. Served by aside_due, aside_key, and the keys of aside and message.
WITH head AS MATERIALIZED (
    SELECT aside.id, aside.lane, aside.sink, aside.key_hash, aside.state
    FROM json_each(?1) AS wanted
    CROSS JOIN aside ON aside.lane = wanted.value
    WHERE aside.state IN ('retry', 'later') AND aside.due_ms <= ?3
        AND aside.id NOT IN (SELECT value FROM json_each(?2))
        AND aside.sink NOT IN (SELECT value FROM json_each(?6))
    ORDER BY aside.due_ms, aside.id
    LIMIT ?4
),
line (id) AS (
    SELECT head.id FROM head
    UNION
    SELECT behind.id
    FROM head
    CROSS JOIN aside AS behind
        ON behind.lane = head.lane AND behind.sink = head.sink AND behind.key_hash = head.key_hash
    WHERE head.state = 'retry' AND behind.holds = 1 AND behind.state = 'behind'
        AND behind.id > head.id AND behind.id NOT IN (SELECT value FROM json_each(?2))
        AND behind.id <= coalesce((
            SELECT last.id
            FROM aside AS last
            WHERE last.lane = head.lane AND last.sink = head.sink
                AND last.key_hash = head.key_hash AND last.holds = 1 AND last.state = 'behind'
                AND last.id > head.id AND last.id NOT IN (SELECT value FROM json_each(?2))
            ORDER BY last.id
            LIMIT 1 OFFSET ?5 - 1
        ), 9223372036854775807)
)
SELECT line.id, aside.attempts, aside.sink, length(message.payload) AS bytes
FROM line
CROSS JOIN aside ON aside.id = line.id
CROSS JOIN message ON message.id = line.id
ORDER BY line.id
