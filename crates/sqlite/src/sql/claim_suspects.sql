-- The first retries of the batches ?1 that are suspects and due at ?2. Covered by exception_suspect.
SELECT batch_id, idx, tries
FROM exception
WHERE batch_id IN (SELECT value FROM json_each(?1)) AND state = 'retry' AND tries >= 2 AND due_ms <= ?2
ORDER BY batch_id, idx
LIMIT 1000
