-- What was set aside in lanes that a relay has just leased: keys that wait, and what lies beyond a cursor; and
-- one row if anything is not over; and the number of the relay's last settlement.
--
-- Indexes: the primary key of lane; aside_key; the primary key of aside.
--
-- $1 lanes, $2 relay
select distinct 'held' as kind, a.lane, a.sink, a.key_hash as number
from tidegate.aside a
where a.lane = any ($1) and a.key_hash is not null
    and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
union all
select 'aside', l.lane, null, a.id
from tidegate.lane l
cross join lateral (
    select a.id
    from tidegate.aside a
    where a.lane = l.lane and a.id > tidegate.all_read_to(l.cursor, l.state)
) a
where l.lane = any ($1)
union all
select 'alive', $1[1], null, 0
where exists (
    select
    from tidegate.aside a
    where a.lane = any ($1) and (a.state <> 'dead' or a.on_dead <> 'skip')
)
union all
select 'settled', $1[1], null, (
    select p.number from tidegate.progress p where p.relay = $2 order by p.number desc limit 1
)
order by lane, kind, sink, number
