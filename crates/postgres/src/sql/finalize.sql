-- Closes batches that had nothing outstanding a moment ago. Returns those that this call closed. The
-- parts of their aggregates stay: they recognize a settlement that is sent again, and a worker that
-- goes on after a retry overwrites its own.
--
-- Indexes: the keys of batch, lease, exception and part; exception_due.
--
-- Once nothing is outstanding, nothing can be leased or settled until `retry` counts up `reopened`.
-- FOR UPDATE checks that count in the newest version of the batch's row. A server that went back in
-- time since the parts were read may have work outstanding again under the same count: so all of it is
-- looked at once more, and the parts must be those that were added up.
--
-- $1 batch, $2 reopened, $3 digest, $4 summary, $5 the parts that were added up
with durable as materialized (
    -- A batch that is said to be closed stays so.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
locked as materialized (
    select b.id, i.digest, i.summary,
        exists (
            select from tidegate.exception e where e.batch_id = b.id and e.state = 'dead'
        ) as failures
    from unnest($1, $2, $3, $4, $5) as i (id, reopened, digest, summary, parts)
    join tidegate.batch b on b.id = i.id
    cross join durable
    where b.state = 'running' and b.reopened = i.reopened and b.cursor = b.runs
        and not exists (select from tidegate.lease l where l.batch_id = b.id)
        and not exists (
            select from tidegate.exception e where e.batch_id = b.id and e.state = 'retry'
        )
        and i.parts = (
            select coalesce(string_agg(p.accumulator || ':' || p.sequence, ' ' order by p.accumulator), '')
            from tidegate.part p
            where p.batch_id = b.id
        )
    order by b.id
    for update of b
)
update tidegate.batch b
set state = case when l.failures then 'completed_with_failures' else 'completed' end,
    finished_at = now(), digest = l.digest, aggregates = l.summary::jsonb
from locked l
where b.id = l.id
returning b.id, b.state
