-- Settles parts of leases, all or nothing: pages, exceptions, aggregates and progress. Says which
-- leases were lost, in which batches the totals do not build on what is stored, or whether all of it
-- was applied before; in these cases nothing is changed.
--
-- A worker overwrites its total with a sum that it keeps in memory. If the server went back in time,
-- the stored total is an earlier one, and others do again what is missing in it: to overwrite it would
-- count their runs twice. So a total fits only what its worker wrote last. Sequences hold random bits,
-- so that no other settlement passes for this one. A lease, under a fence that is not handed out
-- twice, moves on in the same transaction: every run is in the total that settled it, and in no other.
--
-- Indexes: the keys of part, lease, exception, page and batch; exception_leased finds the retries of
-- a lease that stay leased.
--
-- The rows that decide are locked first, in the order of their keys, and FOR UPDATE checks their
-- newest version. Every change joins `decision`, so that none happens before all locks are held. No
-- row is changed by two CTEs: they do not see each other's work.
--
-- Pages are megabytes. They are unnested in a select list, which streams them; in a from clause, or
-- sorted, they would be written to a temporary file first. Their rows are new, so that nobody waits
-- for them and their order does not matter.
--
-- A cancelled batch has nothing to settle, even if a claim that crossed the cancellation got a lease.
--
-- $1 lease in ms; ranges: $2 batch, $3 fence, $4 from, $5 to, $6 end; retries: $7 batch, $8 fence,
-- $9 index; failures: $10 batch, $11 index, $12 attempts, $13 reason, $14 delay in ms or null,
-- $15 whether it was a retry; pages: $16 batch, $17 from, $18 to, $19 indexes or null, $20 results;
-- totals: $21 batch, $22 accumulator, $23 sequence, $24 body, $25 sequence before
with durable as materialized (
    -- A settlement that is answered is durable.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
part_range as materialized (
    select * from unnest($2, $3, $4, $5, $6) as r (batch_id, fence, lo, hi, stop)
),
part_retry as materialized (
    select * from unnest($7, $8, $9) as r (batch_id, fence, index)
),
failed as materialized (
    select f.batch_id, f.index, f.attempts, f.reason, f.retried,
        case when f.delay_ms is null then 'dead' else 'retry' end as state,
        now() + coalesce(f.delay_ms, 0) * interval '1 ms' as due_at
    from unnest($10, $11, $12, $13, $14, $15)
        as f (batch_id, index, attempts, reason, delay_ms, retried)
),
total as materialized (
    select *
    from unnest($21, $22, $23, $24, $25) as t (batch_id, accumulator, sequence, body, before)
),
stored as materialized (
    select p.batch_id, p.accumulator, p.sequence
    from tidegate.part p
    join total t on t.batch_id = p.batch_id and t.accumulator = p.accumulator
    order by p.batch_id, p.accumulator
    for update of p
),
chain as materialized (
    select t.batch_id, coalesce(s.sequence, 0) = t.sequence as applied,
        coalesce(s.sequence, 0) = t.before as fits
    from total t
    left join stored s on s.batch_id = t.batch_id and s.accumulator = t.accumulator
),
applied_before as materialized (
    select coalesce(bool_and(applied), false) as yes, coalesce(bool_and(fits), true) as fits
    from chain
),
held_range as materialized (
    select l.fence
    from applied_before a
    cross join part_range r
    join tidegate.lease l on l.batch_id = r.batch_id and l.hi = r.stop
    join tidegate.batch b on b.id = r.batch_id
    where a.fits and l.fence = r.fence and l.lo = r.lo and b.state = 'running'
    order by l.batch_id, l.hi
    for update of l
),
held_retry as materialized (
    select e.batch_id, e.index, e.fence
    from applied_before a
    cross join part_retry r
    join tidegate.exception e on e.batch_id = r.batch_id and e.index = r.index
    join tidegate.batch b on b.id = r.batch_id
    where a.fits and e.fence = r.fence and e.state = 'retry' and b.state = 'running'
    order by e.batch_id, e.index
    for update of e
),
late as materialized (
    select r.fence
    from part_range r
    where r.fence not in (select fence from held_range)
    union
    select r.fence
    from part_retry r
    where (r.batch_id, r.index, r.fence) not in (select batch_id, index, fence from held_retry)
),
decision as materialized (
    select a.yes as applied_before, a.fits, a.fits and not exists (select from late) as apply
    from applied_before a
    cross join durable
),
ended as (
    delete from tidegate.lease l
    using part_range r, decision d
    where d.apply and l.batch_id = r.batch_id and l.hi = r.stop and r.hi = r.stop
),
moved as (
    update tidegate.lease l
    set lo = r.hi, expires_at = now() + $1 * interval '1 ms'
    from part_range r, decision d
    where d.apply and l.batch_id = r.batch_id and l.hi = r.stop and r.hi < r.stop
),
done as (
    delete from tidegate.exception e
    using part_retry r, decision d
    where d.apply and e.batch_id = r.batch_id and e.index = r.index
        and (r.batch_id, r.index) not in (select batch_id, index from failed)
),
failed_again as (
    update tidegate.exception e
    set attempts = f.attempts, state = f.state, reason = f.reason, due_at = f.due_at,
        fence = null, worker = null, tries = 0, lost = null
    from failed f, decision d
    where d.apply and f.retried and e.batch_id = f.batch_id and e.index = f.index
),
going_on as (
    update tidegate.exception e
    set due_at = now() + $1 * interval '1 ms'
    from (select distinct batch_id, fence from part_retry) r, decision d
    where d.apply and e.batch_id = r.batch_id and e.fence = r.fence
        and (e.batch_id, e.index) not in (select batch_id, index from part_retry)
),
failed_first as (
    insert into tidegate.exception (batch_id, index, attempts, state, reason, due_at)
    select f.batch_id, f.index, f.attempts, f.state, f.reason, f.due_at
    from failed f, decision d
    where d.apply and not f.retried
    order by f.batch_id, f.index
),
paged as (
    insert into tidegate.page (batch_id, lo, hi, indexes, results)
    select p.batch_id, p.lo, p.hi, p.indexes::bigint[], p.results
    from decision d
    cross join (
        select unnest($16) as batch_id, unnest($17) as lo, unnest($18) as hi,
            unnest($19) as indexes, unnest($20) as results
    ) p
    where d.apply
),
totaled as (
    insert into tidegate.part (batch_id, accumulator, sequence, body)
    select t.batch_id, t.accumulator, t.sequence, t.body
    from total t, decision d
    where d.apply
    order by t.batch_id, t.accumulator
    on conflict (batch_id, accumulator)
        do update set sequence = excluded.sequence, body = excluded.body
)
select d.applied_before or d.apply as applied,
    case when d.fits then '{}'
        else array(select batch_id from chain where not fits)
    end as forgotten,
    (select coalesce(array_agg(fence), '{}') from late) as late
from decision d
