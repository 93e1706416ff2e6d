-- The first ?3 retries of batch ?1 that are due at ?2, by index. Covered by exception_due.
SELECT idx, attempts
FROM exception
WHERE batch_id = ?1 AND state = 'retry' AND due_ms <= ?2
ORDER BY idx
LIMIT ?3
