-- When the next lease of the batches ?1 expires or their next retry is due. Served by the key of
-- lease and by exception_due.
SELECT min(due_ms)
FROM (
    SELECT (SELECT min(expires_ms) FROM lease WHERE batch_id = value) AS due_ms
    FROM json_each(?1)
    UNION ALL
    SELECT (SELECT min(due_ms) FROM exception WHERE batch_id = value AND state = 'retry')
    FROM json_each(?1)
)
