-- Removes a lease that was lost too often. Served by the key of lease.
DELETE FROM lease WHERE batch_id = ?1 AND hi = ?2
