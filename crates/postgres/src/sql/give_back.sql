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
with range as materialized (
    select l.batch_id, l.hi, l.fence = r.fence as held
    from unnest($1, $2) as r (batch_id, fence)
    join tidegate.lease l on l.batch_id = r.batch_id and (l.fence = r.fence or l.lost = r.fence)
    order by l.batch_id, l.hi
    for update of l
),
held_retry as materialized (
    select e.batch_id, e.index
    from unnest($3, $4) as r (batch_id, fence)
    join tidegate.exception e on e.batch_id = r.batch_id and e.fence = r.fence
    where e.state = 'retry'
    order by e.batch_id, e.index
    for update of e
),
lost_retry as materialized (
    select e.batch_id, e.index
    from unnest($5, $6, $7) as r (batch_id, index, fence)
    join tidegate.exception e on e.batch_id = r.batch_id and e.index = r.index
    where e.state = 'retry' and e.lost = r.fence
    order by e.batch_id, e.index
    for update of e
),
ranges as (
    update tidegate.lease l
    set expires_at = case when r.held then now() else l.expires_at end,
        fence = case when r.held then 0 else l.fence end,
        lost = case when r.held then l.lost end,
        tries = l.tries - 1, suspect = l.suspect and l.tries > 2
    from range r
    where l.batch_id = r.batch_id and l.hi = r.hi
),
alive as (
    update tidegate.exception e
    set lost = null, tries = e.tries - 1
    from lost_retry r
    where e.batch_id = r.batch_id and e.index = r.index
)
update tidegate.exception e
set due_at = now(), fence = null, worker = null, tries = e.tries - 1
from held_retry r
where e.batch_id = r.batch_id and e.index = r.index
