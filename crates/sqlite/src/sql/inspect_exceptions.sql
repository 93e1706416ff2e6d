-- The first ?4 exceptions of a batch from index ?2 on, in state ?3 if given. Served by the key of
-- exception.
SELECT idx, attempts, state, reason
FROM exception
WHERE batch_id = ?1 AND idx >= ?2 AND (?3 IS NULL OR state = ?3)
ORDER BY idx
LIMIT ?4
