-- When the next of what was set aside in the lanes ?1 is due, without the ids ?2 and the
-- sinks ?3. Served by aside_due.
SELECT min((
    SELECT aside.due_ms
    FROM aside
    WHERE aside.lane = wanted.value AND aside.state IN ('retry', 'later')
        AND aside.id NOT IN (SELECT value FROM json_each(?2))
        AND aside.sink NOT IN (SELECT value FROM json_each(?3))
    ORDER BY aside.due_ms
    LIMIT 1
))
FROM json_each(?1) AS wanted
