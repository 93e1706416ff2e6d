-- Stores a batch, and its snapshot unless that is stored already.
--
-- Index: the key of snapshot.
--
-- $1 snapshot's hash, $2 snapshot's text, $3 workload, $4 seed, $5 runs, $6 keep, $7 most attempts,
-- $8 backoff in ms, $9 its cap, $10 timeout in ms or null
with durable as materialized (
    -- A batch that has its number is durable.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
stored as (
    insert into tidegate.snapshot (hash, body)
    values ($1, $2)
    on conflict (hash) do nothing
)
insert into tidegate.batch
    (snapshot, workload, seed, runs, keep, max_attempts, backoff_ms, backoff_cap_ms, timeout_ms)
select $1, $3, $4, $5, $6, $7, $8, $9, $10
from durable
returning id
