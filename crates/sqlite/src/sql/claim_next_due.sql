-- When the next lease of the batches ?1 expires or their next retry is due. If ?2, suspects that can
-- be leased at ?3 do not count: the worker holds one already. Served by the keys of batch and lease,
-- and by exception_due.
SELECT min(due_ms)
FROM (
    SELECT (
        SELECT min(expires_ms)
        FROM lease
        WHERE batch_id = batch.id AND NOT (
            ?2 AND expires_ms <= ?3 AND (suspect OR hi - lo = 1)
            AND (tries = 2 OR hi - lo = 1) AND tries BETWEEN 2 AND max(max_attempts, 5) - 1
        )
    ) AS due_ms
    FROM json_each(?1) AS wanted JOIN batch ON batch.id = wanted.value
    UNION ALL
    SELECT (
        SELECT min(due_ms)
        FROM exception
        WHERE batch_id = batch.id AND state = 'retry' AND NOT (
            ?2 AND due_ms <= ?3 AND tries BETWEEN 2 AND max(max_attempts, 5) - 1
        )
    )
    FROM json_each(?1) AS wanted JOIN batch ON batch.id = wanted.value
)
