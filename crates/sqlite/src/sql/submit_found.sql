-- The batch of workload ?1 that is running or, unless ?2, the last one that was completed. Served by
-- batch_workload.
SELECT id FROM batch
WHERE workload = ?1
    AND (state = 'running' OR (NOT ?2 AND state IN ('completed', 'completed_with_failures')))
ORDER BY state = 'running' DESC, id DESC
LIMIT 1
