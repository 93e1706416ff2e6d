-- When the next of what was set aside in the lanes ?1 is due, without the ids ?2 and the sinks ?3. Served by
-- aside_due_sink, which also tells which sinks have something waiting in a lane, and aside_key.
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
)
SELECT min((
    SELECT aside.due_ms
    FROM aside INDEXED BY aside_due_sink
    WHERE aside.lane = waiting.lane AND aside.sink = waiting.sink AND aside.state IN ('retry', 'later')
        AND aside.id NOT IN (SELECT value FROM json_each(?2))
        AND (aside.state = 'later' OR aside.key_hash IS NULL OR NOT EXISTS (
            SELECT 1
            FROM aside AS before
            WHERE before.lane = aside.lane AND before.sink = aside.sink
                AND before.key_hash = aside.key_hash AND before.holds = 1 AND before.id < aside.id
        ))
    ORDER BY aside.due_ms
    LIMIT 1
))
FROM waiting
WHERE waiting.sink NOT IN (SELECT value FROM json_each(?3))
