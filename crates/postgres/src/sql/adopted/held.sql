-- Keys that wait for what was set aside.
--
-- Index: adopted_aside_key.
--
-- $1 adopted
select distinct a.sink, a.key_hash
from tidegate.adopted_aside a
where a.adopted = $1 and a.key_hash is not null
    and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
