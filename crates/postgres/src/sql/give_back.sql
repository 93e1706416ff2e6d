-- Gives leases back: their ranges expire and their retries are due at once, and they were not lost. Of
-- leases that were lost already, it takes the loss back: their worker is alive. The range of such a
-- lease may be in parts by now.
--
-- The commit is not forced: if a crash takes it back, the leases expire by themselves.
--
-- Indexes: lease is read as a whole (a row per thread at work); the key of exception; exception_leased.
--
-- ranges: $1 batch, $2 fence; leases of retries: $3 batch, $4 fence; their retries: $5 batch, $6 index,
-- $7 fence
with range_lock as materialized (
    select l.batch_id, l.hi, l.fence = r.fence as held
    from unnest($1, $2) as r (batch_id, fence)
    join tidegate.lease l on l.batch_id = r.batch_id and (l.fence = r.fence or l.lost = r.fence)
    order by l.batch_id, l.hi
    for update of l
),
retry_lock as materialized (
    select e.batch_id, e.index, e.fence, e.lost
    from (
        select e.batch_id, e.index
        from unnest($3, $4) as r (batch_id, fence)
        join tidegate.exception e on e.batch_id = r.batch_id and e.fence = r.fence
        union
        select * from unnest($5, $6) as r (batch_id, index)
    ) r
    join tidegate.exception e on e.batch_id = r.batch_id and e.index = r.index
    where e.state = 'retry'
    order by e.batch_id, e.index
    for update of e
),
-- A worker may give back the lease of a range that it has lost, and the one that it holds by now.
range as materialized (
    select batch_id, hi, bool_or(held) as held, bool_or(not held) as alive,
        bool_or(held)::integer + bool_or(not held)::integer as leases
    from range_lock
    group by batch_id, hi
),
retry as materialized (
    select k.batch_id, k.index, h.fence is not null as held, l.fence is not null as alive,
        (h.fence is not null)::integer + (l.fence is not null)::integer as leases
    from retry_lock k
    left join unnest($3, $4) as h (batch_id, fence)
        on h.batch_id = k.batch_id and h.fence = k.fence
    left join unnest($5, $6, $7) as l (batch_id, index, fence)
        on l.batch_id = k.batch_id and l.index = k.index and l.fence = k.lost
),
ranges as (
    update tidegate.lease l
    set expires_at = case when r.held then now() else l.expires_at end,
        fence = case when r.held then 0 else l.fence end,
        lost = case when not r.alive then l.lost end,
        tries = l.tries - r.leases, suspect = l.suspect and l.tries - r.leases >= 2
    from range r
    where l.batch_id = r.batch_id and l.hi = r.hi
)
update tidegate.exception e
set due_at = case when r.held then now() else e.due_at end,
    fence = case when not r.held then e.fence end,
    worker = case when not r.held then e.worker end,
    lost = case when not r.alive then e.lost end,
    tries = e.tries - r.leases
from retry r
where r.leases > 0 and e.batch_id = r.batch_id and e.index = r.index
