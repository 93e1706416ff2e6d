-- The batches from ?1 to ?2, newest first, in state ?3 if given, with what is leased at ?5, what was leased
-- until before that, and what is retried and dead of each. Served by the key of batch, the key of lease, exception_due and exception_dead.
SELECT
    id, workload, snapshot, seed, runs, keep,
    max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, cursor,
    state, created_ms, finished_ms,
    (SELECT coalesce(sum(hi - lo), 0) FROM lease
     WHERE batch_id = batch.id AND expires_ms > ?5) AS leased,
    (SELECT coalesce(sum(hi - lo), 0) FROM lease
     WHERE batch_id = batch.id AND expires_ms <= ?5) AS ended,
    (SELECT count(*) FROM exception WHERE batch_id = batch.id AND state = 'retry') AS retrying,
    (SELECT count(*) FROM exception WHERE batch_id = batch.id AND state = 'dead') AS dead
FROM batch
WHERE id BETWEEN ?1 AND ?2 AND (?3 IS NULL OR state = ?3)
ORDER BY id DESC
LIMIT ?4
