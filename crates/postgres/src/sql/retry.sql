-- Makes a page of the dead runs of a batch due at once, with no attempts used, and the batch running
-- again. Returns its state before, the number of runs and where the next page begins, or no row.
--
-- Indexes: exception_dead finds the page; the keys of batch and exception.
--
-- The batch is locked before anything is decided: `reopened` tells a finalization that looked at the
-- batch earlier that it must look again. Workers that want fresh ranges of the batch wait for that
-- lock, therefore the page is short.
--
-- $1 batch, $2 from this index on, $3 at most
with durable as materialized (
    -- What is said to be due again stays so.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
locked as materialized (
    select b.id, b.state
    from tidegate.batch b
    where b.id = $1
    for update
),
page as materialized (
    select e.index
    from locked l
    cross join lateral (
        select e.index
        from tidegate.exception e
        where e.batch_id = l.id and e.state = 'dead' and e.index >= $2
        order by e.index
        limit $3 + 1
    ) e
    where l.state <> 'cancelled'
),
following as materialized (
    select case when count(*) > $3 then max(index) end as index from page
),
retried as (
    update tidegate.exception e
    set state = 'retry', attempts = 0, due_at = now(), tries = 0, lost = null
    where e.batch_id = $1 and e.state = 'dead' and e.index = any (array(
        select p.index
        from page p
        cross join following f
        where f.index is null or p.index < f.index
    ))
    returning e.index
),
reopened as (
    update tidegate.batch b
    set state = 'running', finished_at = null, digest = null, aggregates = null,
        reopened = b.reopened + 1
    from locked l
    where b.id = l.id and exists (select from retried)
)
select l.state, (select count(*) from retried) as count, (select index from following) as following
from locked l
cross join durable
