-- Leases a range again. One that was not given back was lost. Served by the key of lease.
UPDATE lease
SET fence = ?3,
    worker = ?4,
    expires_ms = ?5,
    suspect = suspect OR tries >= 2,
    tries = tries + 1,
    lost = coalesce(nullif(fence, 0), lost)
WHERE batch_id = ?1 AND hi = ?2
