-- Makes the first that waits of every key in some lanes due, unless one before it holds the key.
--
-- Index: aside_key.
--
-- $1 lanes
update tidegate.aside a
set state = 'retry', due_at = now()
from (
    select distinct on (f.lane, f.sink, f.key_hash) f.lane, f.id, f.state
    from tidegate.aside f
    where f.lane = any ($1) and f.key_hash is not null
        and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
    order by f.lane, f.sink, f.key_hash, f.id
) f
where f.state = 'behind' and a.lane = f.lane and a.id = f.id
