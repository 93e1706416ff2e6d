-- Gives up a lease, if it is held and begins at ?4. Served by the key of lease.
DELETE FROM lease WHERE batch_id = ?1 AND hi = ?2 AND fence = ?3 AND lo = ?4
