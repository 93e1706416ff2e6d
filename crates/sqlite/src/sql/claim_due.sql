-- The first ?3 retries of batch ?1 that are due at ?2 and no suspects, by index, among the ?4 that
-- were due first. Covered by exception_due.
SELECT idx, attempts
FROM (
    SELECT idx, attempts
    FROM exception
    WHERE batch_id = ?1 AND state = 'retry' AND due_ms <= ?2 AND tries < 2
    ORDER BY due_ms
    LIMIT ?4
) AS due
ORDER BY idx
LIMIT ?3
