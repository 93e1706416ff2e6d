-- What a relay must know about lanes that it has just leased: sinks that lag, keys that wait, what
-- was set aside beyond a cursor; and one row if anything was set aside that is not over.
--
-- Indexes: the primary keys of lag and lane; aside_key; the primary key of aside.
--
-- $1 lanes
select 'lag' as kind, g.lane, g.sink, g.topics::text as topics, g.cursor as number
from tidegate.lag g
where g.lane = any ($1)
union all
select distinct 'held', a.lane, a.sink, null, a.key_hash
from tidegate.aside a
where a.lane = any ($1) and a.key_hash is not null
    and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
union all
select 'aside', l.lane, null, null, a.id
from tidegate.lane l
cross join lateral (
    select a.id
    from tidegate.aside a
    where a.lane = l.lane and a.id > least(l.cursor, (
        select min(g.cursor) from tidegate.lag g where g.lane = l.lane
    ))
) a
where l.lane = any ($1)
union all
select 'alive', $1[1], null, null, 0
where exists (
    select
    from tidegate.aside a
    where a.lane = any ($1) and (a.state <> 'dead' or a.on_dead <> 'skip')
)
order by lane, kind, sink, number
