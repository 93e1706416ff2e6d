-- Leases the retries ?2 of batch ?1 in place. One that was not given back was lost. Served by the key
-- of exception.
UPDATE exception
SET fence = ?3, worker = ?4, due_ms = ?5, tries = tries + 1, lost = coalesce(fence, lost)
WHERE batch_id = ?1 AND idx IN (SELECT value FROM json_each(?2))
