-- Gives a leased range back: it can be leased at ?4, and was not lost. Served by the key of lease.
UPDATE lease
SET fence = 0, expires_ms = ?4, tries = tries - 1, suspect = suspect AND tries > 2
WHERE batch_id = ?1 AND hi = ?2 AND fence = ?3
