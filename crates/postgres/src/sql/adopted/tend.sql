-- Makes the first that waits of every key due, unless one before it holds the key.
--
-- Index: adopted_aside_key.
--
-- $1 adopted
update tidegate.adopted_aside a
set state = 'retry', due_at = now()
from (
    select distinct on (f.sink, f.key_hash) f.adopted, f.row_key, f.state
    from tidegate.adopted_aside f
    where f.adopted = $1 and f.key_hash is not null
        and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
    order by f.sink, f.key_hash, f.id
) f
where f.state = 'behind' and a.adopted = f.adopted and a.row_key = f.row_key
