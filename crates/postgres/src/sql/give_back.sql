-- Gives leases back: their ranges expire and their retries are due at once. Leases that were lost
-- already are passed over.
--
-- Indexes: the key of lease; exception_leased.
--
-- ranges: $1 batch, $2 end, $3 fence; leases of retries: $4 batch, $5 fence
with held_range as materialized (
    select l.batch_id, l.hi
    from unnest($1, $2, $3) as r (batch_id, hi, fence)
    join tidegate.lease l on l.batch_id = r.batch_id and l.hi = r.hi
    where l.fence = r.fence
    order by l.batch_id, l.hi
    for update of l
),
held_retry as materialized (
    select e.batch_id, e.index
    from unnest($4, $5) as r (batch_id, fence)
    join tidegate.exception e on e.batch_id = r.batch_id and e.fence = r.fence
    order by e.batch_id, e.index
    for update of e
),
expired as (
    update tidegate.lease l
    set expires_at = now()
    from held_range h
    where l.batch_id = h.batch_id and l.hi = h.hi
)
update tidegate.exception e
set due_at = now(), fence = null, worker = null
from held_retry h
where e.batch_id = h.batch_id and e.index = h.index
