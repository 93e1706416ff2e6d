-- Closes batches that had nothing outstanding a moment ago. Returns those that this call closed. The
-- parts of their aggregates stay: they recognize a settlement that is sent again, and a worker that
-- goes on after a retry overwrites its own.
--
-- Indexes: the keys of batch and exception.
--
-- Once nothing is outstanding, nothing can be leased or settled until `retry` counts up `reopened`.
-- A batch that is still running with the same count is therefore still as it was read, and FOR UPDATE
-- checks both in the newest version of its row.
--
-- $1 batch, $2 reopened, $3 digest, $4 summary
with locked as materialized (
    select b.id, i.digest, i.summary,
        exists (
            select from tidegate.exception e where e.batch_id = b.id and e.state = 'dead'
        ) as failures
    from unnest($1, $2, $3, $4) as i (id, reopened, digest, summary)
    join tidegate.batch b on b.id = i.id
    where b.state = 'running' and b.reopened = i.reopened
    order by b.id
    for update of b
)
update tidegate.batch b
set state = case when l.failures then 'completed_with_failures' else 'completed' end,
    finished_at = now(), digest = l.digest, aggregates = l.summary::jsonb
from locked l
where b.id = l.id
returning b.id, b.state
