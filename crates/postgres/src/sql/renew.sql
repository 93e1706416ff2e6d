-- Extends leases and returns the fences of those that are lost. Retries that are still held are
-- extended even if others of the same lease are lost.
--
-- Indexes: the keys of lease, exception and batch.
--
-- $1 lease in ms; ranges: $2 batch, $3 end, $4 fence; retries: $5 batch, $6 index, $7 fence
with durable as materialized (
    -- A renewal that a crash takes back would let another have the same runs too early.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
part_range as materialized (
    select * from unnest($2, $3, $4) as r (batch_id, hi, fence)
),
part_retry as materialized (
    select * from unnest($5, $6, $7) as r (batch_id, index, fence)
),
held_range as materialized (
    select l.batch_id, l.hi, l.fence
    from part_range r
    join tidegate.lease l on l.batch_id = r.batch_id and l.hi = r.hi
    join tidegate.batch b on b.id = r.batch_id
    where l.fence = r.fence and b.state = 'running'
    order by l.batch_id, l.hi
    for update of l
),
held_retry as materialized (
    select e.batch_id, e.index, e.fence
    from part_retry r
    join tidegate.exception e on e.batch_id = r.batch_id and e.index = r.index
    join tidegate.batch b on b.id = r.batch_id
    where e.fence = r.fence and e.state = 'retry' and b.state = 'running'
    order by e.batch_id, e.index
    for update of e
),
extended_ranges as (
    update tidegate.lease l
    set expires_at = now() + $1 * interval '1 ms'
    from held_range h
    cross join durable
    where l.batch_id = h.batch_id and l.hi = h.hi
),
extended_retries as (
    update tidegate.exception e
    set due_at = now() + $1 * interval '1 ms'
    from held_retry h
    cross join durable
    where e.batch_id = h.batch_id and e.index = h.index
)
select r.fence
from part_range r
where r.fence not in (select fence from held_range)
union
select r.fence
from part_retry r
where (r.batch_id, r.index, r.fence) not in (select batch_id, index, fence from held_retry)
