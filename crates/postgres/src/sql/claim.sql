-- Leases work to one worker and returns everything needed to act on it: expired leases first, then
-- due retries, then fresh ranges. One row per batch that something was taken from; at least one row.
--
-- Indexes: batch_running finds the batches; lease is read as a whole (a row per thread at work) and
-- updated by its key; exception_due finds retries.
--
-- Under READ COMMITTED all CTEs read one snapshot, but FOR UPDATE returns the newest version of a row
-- and checks its conditions again. What is handed out is therefore always taken from a row after it
-- was locked. Batches are locked only if a fresh range is taken from them, in the order of their ids.
--
-- The plan must look as cheap as it is, or else the server compiles it (jit_above_cost), which takes
-- seconds. Hence the limits on a plain $2, the table `turn` in place of generate_series with
-- arguments that the planner cannot know, and `limit 1` in place of anti-joins.
--
-- $1 worker, $2 slots, $3 workloads, $4 only this batch or null, $5 lease in ms, $6 known snapshots,
-- $7 and $8 longest and shortest range, $9 to $11 the same for the batches in $9,
-- $12 most retries in a lease
with open as materialized (
    select b.id, b.workload, b.snapshot, b.seed, b.runs, b.keep, b.max_attempts, b.backoff_ms,
        b.backoff_cap_ms, b.timeout_ms, b.cursor,
        coalesce(k.longest, $7) as longest,
        coalesce(k.shortest, $8) as shortest
    from tidegate.batch b
    left join unnest($9, $10, $11) as k (id, longest, shortest) on k.id = b.id
    where b.state = 'running' and b.workload = any ($3) and ($4 is null or b.id = $4)
),
turn as materialized (
    select n from generate_series(1, $2) as n
),
-- Step 1: expired leases.
expired as materialized (
    select l.batch_id, l.hi
    from tidegate.lease l
    join open o on o.id = l.batch_id
    where l.expires_at <= now()
    order by l.batch_id, l.hi
    limit $2
    for update of l skip locked
),
-- Fences are drawn in the order in which the leases are returned.
expired_fence as materialized (
    select e.batch_id, e.hi, nextval('tidegate.fence') as fence
    from expired e
),
reclaimed as (
    update tidegate.lease l
    set fence = e.fence, worker = $1, expires_at = now() + $5 * interval '1 ms'
    from expired_fence e
    where l.batch_id = e.batch_id and l.hi = e.hi
    returning l.batch_id, l.fence, l.lo, l.hi
),
after_expired as materialized (
    select $2 - count(*) as slots from expired_fence
),
-- Step 2: due retries, in leases of at most `most` runs, the batches taking turns.
due_batch as materialized (
    select o.id, greatest(least(o.longest, $12), 1) as most
    from open o
    where (
        select true
        from tidegate.exception e
        where e.batch_id = o.id and e.state = 'retry' and e.due_at <= now()
        limit 1
    )
    order by o.id
    limit $2 + 1 -- one more than there are turns, to know whether some stay due
),
due_seen as materialized (
    -- As many in each lease as spreads them over the slots: see tidegate_core::claim.
    select b.id, d.found,
        greatest(least(b.most, (d.found + a.slots - 1) / greatest(a.slots, 1)), 1) as most
    from due_batch b
    cross join after_expired a
    cross join lateral (
        select count(*) as found
        from (
            select
            from tidegate.exception e
            where e.batch_id = b.id and e.state = 'retry' and e.due_at <= now()
            limit a.slots * b.most + 1 -- one more, likewise
        ) e
    ) d
),
due_plan as (
    select t.id, t.most, count(*) as bundles
    from (
        select s.id, s.most
        from due_seen s
        join turn t on (t.n - 1) * s.most < s.found
        order by t.n, s.id
        limit (select slots from after_expired)
    ) t
    group by t.id, t.most
),
due as materialized (
    select e.batch_id, e.index,
        (row_number() over (partition by e.batch_id order by e.index) - 1) / p.most as turn
    from due_plan p
    cross join lateral (
        select e.batch_id, e.index
        from tidegate.exception e
        where e.batch_id = p.id and e.state = 'retry' and e.due_at <= now()
        order by e.index
        limit p.bundles * p.most
        for update skip locked
    ) e
),
bundle as materialized (
    select d.batch_id, d.turn, nextval('tidegate.fence') as fence
    from (select distinct batch_id, turn from due order by turn, batch_id) d
),
retried as (
    update tidegate.exception e
    set fence = b.fence, worker = $1, due_at = now() + $5 * interval '1 ms'
    from due d
    join bundle b on b.batch_id = d.batch_id and b.turn = d.turn
    where e.batch_id = d.batch_id and e.index = d.index
    returning e.batch_id, e.fence, e.index, e.attempts
),
after_due as materialized (
    select a.slots - (select count(*) from bundle) as slots from after_expired a
),
-- Step 3: fresh ranges, shared out as tidegate_core::claim::share does it. Only the batches with the
-- fewest leases can get a turn, so that no more than $2 of them are looked at.
candidate as materialized (
    select o.id, o.cursor, o.runs, o.longest, o.shortest, coalesce(l.active, 0) as active
    from open o
    left join (
        select l.batch_id, count(*) as active
        from tidegate.lease l
        left join expired e on e.batch_id = l.batch_id and e.hi = l.hi
        where l.expires_at > now() or e.hi is not null
        group by l.batch_id
    ) l on l.batch_id = o.id
    where o.cursor < o.runs
    order by coalesce(l.active, 0), o.id
    limit $2
),
fresh_plan as (
    select t.id, count(*) as ranges
    from (
        select c.id
        from candidate c
        join turn t on t.n <= c.runs - c.cursor
        order by c.active + t.n, c.id
        limit (select slots from after_due)
    ) t
    group by t.id
),
locked as materialized (
    select b.id, b.cursor, b.runs, c.longest, c.shortest, c.active, p.ranges
    from fresh_plan p
    join candidate c on c.id = p.id
    join tidegate.batch b on b.id = p.id
    where b.state = 'running' and b.cursor < b.runs
    order by b.id
    for update of b
),
sized as (
    select l.id, l.cursor, l.runs, l.ranges,
        greatest(least(greatest(
            (l.runs - l.cursor) / greatest(2 * (l.active + l.ranges), 1),
            l.shortest), l.longest), 1) as length
    from locked l
),
fresh as materialized (
    select f.id, f.lo, f.hi, nextval('tidegate.fence') as fence
    from (
        select s.id, s.cursor + (t.n - 1) * s.length as lo,
            least(s.cursor + t.n * s.length, s.runs) as hi
        from sized s
        join turn t on t.n <= s.ranges
        where s.cursor + (t.n - 1) * s.length < s.runs
        order by s.id, t.n
    ) f
),
advanced as (
    update tidegate.batch b
    set cursor = f.hi
    from (select id, max(hi) as hi from fresh group by id) f
    where b.id = f.id
),
leased as (
    insert into tidegate.lease (batch_id, hi, lo, fence, worker, expires_at)
    select f.id, f.hi, f.lo, f.fence, $1, now() + $5 * interval '1 ms'
    from fresh f
    order by f.id, f.hi
    returning batch_id, fence, lo, hi
),
-- The answer.
granted as (
    select batch_id, fence, lo, hi, null::integer as attempts from reclaimed
    union all
    select batch_id, fence, index, index + 1, attempts from retried
    union all
    select batch_id, fence, lo, hi, null from leased
),
grants as materialized (
    select g.batch_id,
        array_agg(g.fence order by g.fence, g.lo) as fences,
        array_agg(g.lo order by g.fence, g.lo) as los,
        array_agg(g.hi order by g.fence, g.lo) as his,
        array_agg(g.attempts order by g.fence, g.lo) as attempts
    from granted g
    group by g.batch_id
),
settled as (
    select array_agg(o.id order by o.id) as ids
    from open o
    where o.cursor = o.runs
        and (select true from tidegate.lease l where l.batch_id = o.id limit 1) is null
        and (
            select true
            from tidegate.exception e
            where e.batch_id = o.id and e.state = 'retry'
            limit 1
        ) is null
),
-- A retry that another claim is taking at this moment still counts as due: the answer may be too
-- early, never too late.
upcoming as (
    select min(l.expires_at) as at
    from tidegate.lease l
    join open o on o.id = l.batch_id
    left join expired e on e.batch_id = l.batch_id and e.hi = l.hi
    where e.hi is null
    union all
    select r.due_at
    from open o
    cross join lateral (
        select e.due_at
        from tidegate.exception e
        where e.batch_id = o.id and e.state = 'retry' and e.due_at > now()
        order by e.due_at
        limit 1
    ) r
    union all
    select now()
    where (select sum(found) from due_seen) > (select count(*) from due)
    union all
    select now() + $5 * interval '1 ms'
    where exists (select from grants)
),
tally as (
    select (select count(*) from open) as open,
        (select ids from settled) as settled,
        (
            select extract(epoch from min(greatest(u.at, now())) - now())::double precision
            from upcoming u
            where u.at is not null
        ) as next_due_seconds
)
select t.open, t.settled, t.next_due_seconds, g.fences, g.los, g.his, g.attempts,
    o.id, o.workload, o.snapshot, o.seed, o.runs, o.keep, o.max_attempts, o.backoff_ms,
    o.backoff_cap_ms, o.timeout_ms,
    -- The text of a snapshot comes once, and only if the worker does not have it.
    case when o.snapshot <> all ($6) and row_number() over (partition by o.snapshot order by o.id) = 1
        then (select s.body from tidegate.snapshot s where s.hash = o.snapshot)
    end as snapshot_body
from tally t
left join (grants g join open o on o.id = g.batch_id) on true
order by o.id
