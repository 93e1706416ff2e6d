-- Leases an expired range again. Served by the key of lease.
UPDATE lease SET fence = ?3, worker = ?4, expires_ms = ?5 WHERE batch_id = ?1 AND hi = ?2
