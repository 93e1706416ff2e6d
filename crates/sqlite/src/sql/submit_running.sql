-- The batch of workload ?1 that is running, if there is one. Served by batch_running.
SELECT id FROM batch WHERE state = 'running' AND workload = ?1 ORDER BY id LIMIT 1
