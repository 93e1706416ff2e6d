-- When the next of what was set aside in the lanes ?1 is due, without the ids ?2 and the
-- sinks ?3. Served by aside_due and aside_key.
SELECT min((
    SELECT aside.due_ms
    FROM aside
    WHERE aside.lane = wanted.value AND aside.state IN ('retry', 'later')
        AND aside.id NOT IN (SELECT value FROM json_each(?2))
        AND aside.sink NOT IN (SELECT value FROM json_each(?3))
        AND (aside.state = 'later' OR aside.key_hash IS NULL OR NOT EXISTS (
            SELECT 1
            FROM aside AS before
            WHERE before.lane = aside.lane AND before.sink = aside.sink
                AND before.key_hash = aside.key_hash AND before.holds = 1 AND before.id < aside.id
        ))
    ORDER BY aside.due_ms
    LIMIT 1
))
FROM json_each(?1) AS wanted
