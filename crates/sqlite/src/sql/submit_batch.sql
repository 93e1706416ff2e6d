-- Stores a batch and returns its number. Served by the key of batch.
INSERT INTO batch (
    workload, snapshot, seed, runs, keep,
    max_attempts, backoff_ms, backoff_cap_ms, timeout_ms, state, created_ms
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'running', ?10)
RETURNING id
