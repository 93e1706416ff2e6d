-- How many runs of a batch are dead, if it is running and has nothing outstanding. Served by the key
-- of batch, the key of lease, exception_due and exception_dead.
SELECT (SELECT count(*) FROM exception WHERE batch_id = ?1 AND state = 'dead')
FROM batch
WHERE id = ?1
    AND state = 'running'
    AND cursor = runs
    AND NOT EXISTS (SELECT 1 FROM lease WHERE batch_id = ?1)
    AND NOT EXISTS (SELECT 1 FROM exception WHERE batch_id = ?1 AND state = 'retry')
