-- Takes back the loss of a lease whose worker is alive, from all parts of its range. Served by the key
-- of lease.
UPDATE lease
SET lost = NULL, tries = tries - 1, suspect = suspect AND tries > 2
WHERE batch_id = ?1 AND lost = ?2
