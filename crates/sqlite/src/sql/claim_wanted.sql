-- The running batches that a claim is for (?2: workloads, ?3: only this batch), and what is leased
-- and retried of each at ?1. Served by batch_running, the key of lease, exception_due and
-- exception_suspect.
SELECT
    id, workload, snapshot, seed, runs, keep,
    max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, cursor,
    (SELECT count(*) FROM lease WHERE batch_id = batch.id AND expires_ms > ?1) AS active,
    (SELECT count(*) FROM lease WHERE batch_id = batch.id AND expires_ms <= ?1) AS expired,
    (SELECT min(due_ms) FROM exception WHERE batch_id = batch.id AND state = 'retry') AS retry_ms,
    EXISTS (
        SELECT 1 FROM exception WHERE batch_id = batch.id AND state = 'retry' AND tries >= 2
    ) AS suspects
FROM batch
WHERE state = 'running'
    AND workload IN (SELECT value FROM json_each(?2))
    AND (?3 IS NULL OR id = ?3)
ORDER BY id
