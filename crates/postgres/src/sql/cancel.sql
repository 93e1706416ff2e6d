-- Stops a running batch and takes all its leases away. The rows of the leases stay, for the count of
-- what was never settled; nobody holds them any more. Returns the state before, or no row.
--
-- Indexes: the keys of batch and lease; exception_leased.
--
-- $1 batch, $2 the fence that nobody holds
with locked as materialized (
    select b.id, b.state
    from tidegate.batch b
    where b.id = $1
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
select state
from locked
