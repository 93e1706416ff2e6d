-- Makes all dead runs of a batch due at once, with no attempts used, and the batch running again.
-- Returns its state before and the number of runs, or no row.
--
-- Indexes: the keys of batch and exception.
--
-- The batch is locked before anything is decided: `reopened` tells a finalization that looked at the
-- batch earlier that it must look again.
--
-- $1 batch
with locked as materialized (
    select b.id, b.state
    from tidegate.batch b
    where b.id = $1
    for update
),
retried as (
    update tidegate.exception e
    set state = 'retry', attempts = 0, due_at = now()
    from locked l
    where l.state <> 'cancelled' and e.batch_id = l.id and e.state = 'dead'
    returning e.index
),
reopened as (
    update tidegate.batch b
    set state = 'running', finished_at = null, digest = null, aggregates = null,
        reopened = b.reopened + 1
    from locked l
    where b.id = l.id and exists (select from retried)
)
select l.state, (select count(*) from retried) as count
from locked l
