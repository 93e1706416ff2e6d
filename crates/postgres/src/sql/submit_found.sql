-- The batch of a workload that is running or, unless it is to be done again, the last one that was
-- completed.
--
-- Index: batch_workload.
--
-- $1 workload, $2 whether it is to be done again
select id from tidegate.batch
where workload = $1
    and (state = 'running' or (not $2 and state in ('completed', 'completed_with_failures')))
order by state = 'running' desc, id desc
limit 1
