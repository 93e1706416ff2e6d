-- Leases a range for the first time. Served by the key of lease.
INSERT INTO lease (batch_id, hi, lo, fence, worker, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
