-- Gives up a retry that was lost too often. Served by the key of exception.
UPDATE exception
SET state = 'dead', attempts = tries, reason = ?3, due_ms = NULL, fence = NULL, worker = NULL
WHERE batch_id = ?1 AND idx = ?2
