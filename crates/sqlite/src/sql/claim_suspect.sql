-- Leases a suspected retry alone, and returns its attempts. Served by the key of exception.
UPDATE exception
SET fence = ?3, worker = ?4, due_ms = ?5, tries = tries + 1, lost = coalesce(fence, lost)
WHERE batch_id = ?1 AND idx = ?2
RETURNING attempts
