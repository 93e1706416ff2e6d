-- The batches among $1 that have nothing outstanding, with their aggregates' parts: one row per part,
-- or one without a part.
--
-- Indexes: batch_running; the keys of lease and part; exception_due.
select b.id, b.reopened, p.accumulator, p.sequence, p.body
from tidegate.batch b
left join tidegate.part p on p.batch_id = b.id
where b.id = any ($1) and b.state = 'running' and b.cursor = b.runs
    and not exists (select from tidegate.lease l where l.batch_id = b.id)
    and not exists (
        select from tidegate.exception e where e.batch_id = b.id and e.state = 'retry'
    )
order by b.id, p.accumulator
