-- Batches and where they stand, newest first, all from one snapshot.
--
-- Indexes: the keys of batch, lease and exception.
--
-- $1 only this batch or null, $2 only this state or null, $3 only those before or null, $4 at most
select b.id, b.workload, b.snapshot, b.seed, b.runs, b.keep, b.max_attempts, b.backoff_ms,
    b.backoff_cap_ms, b.timeout_ms, b.state, b.cursor, l.leased, l.ended, e.retrying, e.dead,
    (extract(epoch from b.created_at) * 1000)::bigint as created_ms,
    (extract(epoch from b.finished_at) * 1000)::bigint as finished_ms
from (
    select *
    from tidegate.batch b
    where ($1 is null or b.id = $1) and ($2 is null or b.state = $2) and ($3 is null or b.id < $3)
    order by b.id desc
    limit $4
) b
cross join lateral (
    select coalesce(sum(l.hi - l.lo) filter (where l.expires_at > now()), 0)::bigint as leased,
        coalesce(sum(l.hi - l.lo) filter (where l.expires_at <= now()), 0)::bigint as ended
    from tidegate.lease l
    where l.batch_id = b.id
) l
cross join lateral (
    select count(*) filter (where e.state = 'retry') as retrying,
        count(*) filter (where e.state = 'dead') as dead
    from tidegate.exception e
    where e.batch_id = b.id
) e
order by b.id desc
