-- Stops a running batch and takes all its leases away. The rows of the leases stay, for the count of
-- what was never settled; nobody holds them any more. Returns the state before, or no row.
--
-- Indexes: the keys of batch and lease; exception_leased.
--
-- Locks in the order of claim and settle: leases, retries, the batch; each by its key. The last CTE
-- that locks is joined by every change, so that none happens before all locks are held.
--
-- $1 batch, $2 the fence that nobody holds
with durable as materialized (
    -- A cancellation that is answered is durable.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
range_lock as materialized (
    select l.hi
    from tidegate.lease l
    where l.batch_id = $1
    order by l.hi
    for update
),
retry_lock as materialized (
    select e.index
    from tidegate.exception e
    where e.batch_id = $1 and e.fence is not null and (select count(*) from range_lock) >= 0
    order by e.index
    for update
),
locked as materialized (
    select b.id, b.state
    from tidegate.batch b
    where b.id = $1 and (select count(*) from retry_lock) >= 0
    for update
),
cancelled as (
    update tidegate.batch b
    set state = 'cancelled', finished_at = now()
    from locked l
    where b.id = l.id and l.state = 'running'
),
ranges as (
    update tidegate.lease l
    set fence = $2
    from locked b
    where b.state = 'running' and l.batch_id = b.id
),
retries as (
    update tidegate.exception e
    set fence = null, worker = null
    from locked b
    where b.state = 'running' and e.batch_id = b.id and e.fence is not null
)
select l.state
from locked l
cross join durable
