-- Gives a leased range time until ?4, if it is held. Served by the key of lease.
UPDATE lease SET expires_ms = ?4 WHERE batch_id = ?1 AND hi = ?2 AND fence = ?3
