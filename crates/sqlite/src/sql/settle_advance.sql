-- Moves a lease up to ?5, if it is held and begins at ?4. Served by the key of lease.
UPDATE lease
SET lo = ?5, expires_ms = ?6
WHERE batch_id = ?1 AND hi = ?2 AND fence = ?3 AND lo = ?4
