-- Leases work to one worker and returns everything needed to act on it: expired leases first, then
-- due retries, then fresh ranges. One row per batch that something was taken from; at least one row.
--
-- Indexes: batch_running finds the batches; lease is read as a whole (a row per thread at work) and
-- updated by its key; exception_due finds retries, exception_suspect and exception_alone suspects.
--
-- Under READ COMMITTED all CTEs read one snapshot, but FOR UPDATE returns the newest version of a row
-- and checks its conditions again. What is handed out is therefore always taken from a row after it
-- was locked. Batches are locked only if a fresh range is taken from them, in the order of their ids.
--
-- The plan must look as cheap as it is, or else the server compiles it (jit_above_cost), which takes
-- seconds. Hence the limits on a plain $2, the table `turn` in place of generate_series with
-- arguments that the planner cannot know, and `limit 1` in place of anti-joins.
--
-- What was lost with its workers again and again is split until its runs are leased one by one, to
-- workers that hold no other suspect, and is given up in the end: see tidegate_core::suspect. What is
-- split now can be leased by the next claim.
--
-- A fence is a number and, below it, random bits that come with the claim. A server that went back in
-- time draws the same numbers again, for other ranges or even other batches; the worker that still
-- holds the old ones must not pass for the new holder.
--
-- $1 worker, $2 slots, $3 workloads, $4 only this batch or null, $5 lease in ms, $6 known snapshots,
-- $7 and $8 longest and shortest range, $9 to $11 the same for the batches in $9,
-- $12 most retries in a lease, $13 random bits of fences, $14 due retries to choose from
with durable as materialized (
    -- A lease that a crash takes back would be given to two. The fence keeps the first of them from
    -- settling, but a load would have sent its records twice.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
open as materialized (
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
    where l.expires_at <= now() and l.tries < 2 and not l.suspect
    order by l.batch_id, l.hi
    limit $2
    for update of l skip locked
),
-- Fences are drawn in the order in which the leases are returned.
expired_fence as materialized (
    select e.batch_id, e.hi, (nextval('tidegate.fence') << 22) | $13 as fence
    from expired e
),
reclaimed as (
    update tidegate.lease l
    set fence = e.fence, worker = $1, expires_at = now() + $5 * interval '1 ms',
        tries = l.tries + 1, lost = coalesce(nullif(l.fence, 0), l.lost)
    from expired_fence e
    where l.batch_id = e.batch_id and l.hi = e.hi
    returning l.batch_id, l.fence, l.lo, l.hi
),
-- Ranges that were lost too often: split, or given up if they have one run.
broken as materialized (
    select l.batch_id, l.hi, l.lo, l.tries, coalesce(nullif(l.fence, 0), l.lost) as lost,
        greatest((l.hi - l.lo + 63) / 64, 1) as length, l.hi - l.lo = 1 as alone
    from tidegate.lease l
    join open o on o.id = l.batch_id
    where l.expires_at <= now()
        and case
            when l.hi - l.lo = 1 then l.tries >= greatest(o.max_attempts, 5)
            else l.tries >= 2 + l.suspect::integer
        end
    order by l.batch_id, l.hi
    limit $2
    for update of l skip locked
),
part as materialized (
    select b.batch_id, b.hi as stop, b.lost, b.lo + (n - 1) * b.length as lo,
        least(b.lo + n * b.length, b.hi) as hi
    from broken b
    cross join generate_series(1, 64) as n
    where not b.alone and b.lo + (n - 1) * b.length < b.hi
),
last_part as (
    update tidegate.lease l
    set lo = p.lo, fence = 0, worker = '', expires_at = now(), tries = 2, lost = p.lost, suspect = true
    from part p
    where p.hi = p.stop and l.batch_id = p.batch_id and l.hi = p.hi
),
other_parts as (
    insert into tidegate.lease (batch_id, hi, lo, fence, worker, expires_at, tries, lost, suspect)
    select p.batch_id, p.hi, p.lo, 0, '', now(), 2, p.lost, true
    from part p
    where p.hi < p.stop
),
ended_range as (
    delete from tidegate.lease l
    using broken b
    where b.alone and l.batch_id = b.batch_id and l.hi = b.hi
),
ended_run as (
    insert into tidegate.exception (batch_id, index, attempts, state, reason, due_at, tries)
    select b.batch_id, b.lo, b.tries, 'dead', format('its worker ended %s times', b.tries), now(), b.tries
    from broken b
    where b.alone
),
broken_retry as materialized (
    select e.batch_id, e.index
    from tidegate.exception e
    join open o on o.id = e.batch_id
    where e.state = 'retry' and e.tries >= 2 and e.due_at <= now()
        and e.tries >= greatest(o.max_attempts, 5)
    order by e.batch_id, e.index
    limit $2
    for update of e skip locked
),
ended_retry as (
    update tidegate.exception e
    set state = 'dead', attempts = e.tries, reason = format('its worker ended %s times', e.tries),
        fence = null, worker = null
    from broken_retry b
    where e.batch_id = b.batch_id and e.index = b.index
),
-- One suspect, for a worker that holds none.
mine as materialized (
    select exists (
            select from tidegate.lease l where l.suspect and l.worker = $1 and l.expires_at > now()
        ) or exists (
            select
            from tidegate.exception e
            where e.state = 'retry' and e.fence is not null and e.tries > 2 and e.worker = $1
                and e.due_at > now()
        ) as suspect,
        $2 - (select count(*) from expired_fence) as slots
),
alone_range as materialized (
    select l.batch_id, l.hi
    from tidegate.lease l
    join open o on o.id = l.batch_id
    join mine m on not m.suspect and m.slots > 0
    where l.expires_at <= now() and (l.suspect or l.tries >= 2)
        and case
            when l.hi - l.lo = 1 then l.tries < greatest(o.max_attempts, 5)
            else l.tries < 2 + l.suspect::integer
        end
    order by l.batch_id, l.hi
    limit 1
    for update of l skip locked
),
suspected_range as (
    update tidegate.lease l
    set fence = a.fence, worker = $1, expires_at = now() + $5 * interval '1 ms', suspect = true,
        tries = l.tries + 1, lost = coalesce(nullif(l.fence, 0), l.lost)
    from (select batch_id, hi, (nextval('tidegate.fence') << 22) | $13 as fence from alone_range) a
    where l.batch_id = a.batch_id and l.hi = a.hi
    returning l.batch_id, l.fence, l.lo, l.hi
),
alone_retry as materialized (
    select e.batch_id, e.index
    from tidegate.exception e
    join open o on o.id = e.batch_id
    join mine m on not m.suspect and m.slots > 0
    where e.state = 'retry' and e.tries >= 2 and e.due_at <= now()
        and e.tries < greatest(o.max_attempts, 5) and not exists (select from alone_range)
    order by e.batch_id, e.index
    limit 1
    for update of e skip locked
),
suspected_retry as (
    update tidegate.exception e
    set fence = a.fence, worker = $1, due_at = now() + $5 * interval '1 ms', tries = e.tries + 1,
        lost = coalesce(e.fence, e.lost)
    from (select batch_id, index, (nextval('tidegate.fence') << 22) | $13 as fence from alone_retry) a
    where e.batch_id = a.batch_id and e.index = a.index
    returning e.batch_id, e.fence, e.index, e.attempts
),
again as materialized (
    select batch_id, hi from expired
    union all
    select batch_id, hi from alone_range
),
after_expired as materialized (
    select m.slots - (select count(*) from alone_range) - (select count(*) from alone_retry) as slots,
        m.suspect or ($5 > 0 and m.slots > 0
            and (exists (select from alone_range) or exists (select from alone_retry))) as barred
    from mine m
),
-- Step 2: due retries, in leases of at most `most` runs, the batches taking turns.
due_batch as materialized (
    select o.id, greatest(least(o.longest, $12), 1) as most
    from open o
    where (
        select true
        from tidegate.exception e
        where e.batch_id = o.id and e.state = 'retry' and e.due_at <= now() and e.tries < 2
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
            where e.batch_id = b.id and e.state = 'retry' and e.due_at <= now() and e.tries < 2
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
        from (
            -- Those that were due first: a claim must not read a million that are due to find those
            -- with the lowest indexes.
            select w.index
            from tidegate.exception w
            where w.batch_id = p.id and w.state = 'retry' and w.due_at <= now() and w.tries < 2
            order by w.due_at
            limit greatest(p.bundles * p.most, $14)
        ) w
        join tidegate.exception e on e.batch_id = p.id and e.index = w.index
        -- Looked at once more under the lock. Written so that only the key serves: with statistics from
        -- when few were due, exception_due would seem to, and would be read once for each of them.
        where e.state || '' = 'retry' and e.due_at <= now() and e.tries < 2
        order by e.index
        limit p.bundles * p.most
        for update of e skip locked
    ) e
),
bundle as materialized (
    select d.batch_id, d.turn, (nextval('tidegate.fence') << 22) | $13 as fence
    from (select distinct batch_id, turn from due order by turn, batch_id) d
),
retried as (
    update tidegate.exception e
    set fence = b.fence, worker = $1, due_at = now() + $5 * interval '1 ms', tries = e.tries + 1,
        lost = coalesce(e.fence, e.lost)
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
        left join again e on e.batch_id = l.batch_id and e.hi = l.hi
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
    select f.id, f.lo, f.hi, (nextval('tidegate.fence') << 22) | $13 as fence
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
    select batch_id, fence, lo, hi, null::integer as attempts, false as suspect from reclaimed
    union all
    select batch_id, fence, lo, hi, null, true from suspected_range
    union all
    select batch_id, fence, index, index + 1, attempts, true from suspected_retry
    union all
    select batch_id, fence, index, index + 1, attempts, false from retried
    union all
    select batch_id, fence, lo, hi, null, false from leased
),
grants as materialized (
    select g.batch_id,
        array_agg(g.fence order by g.fence, g.lo) as fences,
        array_agg(g.lo order by g.fence, g.lo) as los,
        array_agg(g.hi order by g.fence, g.lo) as his,
        array_agg(g.attempts order by g.fence, g.lo) as attempts,
        array_agg(g.suspect order by g.fence, g.lo) as suspects
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
    cross join after_expired a
    left join again e on e.batch_id = l.batch_id and e.hi = l.hi
    where e.hi is null
        -- A suspect is nothing to come back for while the worker holds another.
        and not (a.barred and l.expires_at <= now() and (l.suspect or l.tries >= 2)
            and case
                when l.hi - l.lo = 1 then l.tries < greatest(o.max_attempts, 5)
                else l.tries < 2 + l.suspect::integer
            end)
    union all
    select now()
    where exists (select from broken) or exists (select from broken_retry)
    union all
    select now()
    where (
        select true
        from open o
        cross join after_expired a
        join tidegate.exception e on e.batch_id = o.id and e.state = 'retry' and e.tries >= 2
        left join alone_retry t on t.batch_id = e.batch_id and t.index = e.index
        where e.due_at <= now() and t.index is null
            and (not a.barred or e.tries >= greatest(o.max_attempts, 5))
        limit 1
    )
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
select t.open, t.settled, t.next_due_seconds, g.fences, g.los, g.his, g.attempts, g.suspects,
    o.id, o.workload, o.snapshot, o.seed, o.runs, o.keep, o.max_attempts, o.backoff_ms,
    o.backoff_cap_ms, o.timeout_ms,
    -- The text of a snapshot comes once, and only if the worker does not have it.
    case when o.snapshot <> all ($6) and row_number() over (partition by o.snapshot order by o.id) = 1
        then (select s.body from tidegate.snapshot s where s.hash = o.snapshot)
    end as snapshot_body
from tally t
cross join durable
left join (grants g join open o on o.id = g.batch_id) on true
order by o.id
