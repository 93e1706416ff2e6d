-- The batch of a workload that is running, if there is one.
--
-- Index: batch_running.
--
-- $1 workload
select id from tidegate.batch where state = 'running' and workload = $1 order by id limit 1
