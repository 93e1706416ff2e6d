-- Says that a relay lives, and tells how many lanes it may take, up to its even share. One row per lane that it
-- still holds; `disturbed` tells those where somebody changed what was set aside. At least one row, with the number
-- of relays and lanes. Who looks for relays that live no longer locks their lanes first, as this does.
--
-- Indexes: the primary key of lane (64 rows); relay_expires.
--
-- $1 relay, $2 lease in ms, $3 lanes held, $4 their fences
with durable as materialized (
    -- A lease that a crash takes back would be given to two.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
mine as materialized (
    select l.lane, l.disturbed
    from tidegate.lane l
    join unnest($3, $4) as h (lane, fence) on h.lane = l.lane and h.fence = l.fence
    order by l.lane
    for update of l
),
lives as (
    insert into tidegate.relay (relay, expires_at) values ($1, now() + $2 * interval '1 ms')
),
lived as (
    delete from tidegate.relay r where r.relay = $1 and r.expires_at > now()
),
-- Those that ended without a word; whoever begins looks for older ones.
ended as (
    delete from tidegate.relay r
    where r.ctid = any (array(
        select e.ctid
        from tidegate.relay e
        where e.expires_at <= now() and e.expires_at > now() - interval '1 minute'
        for update skip locked
    ))
),
relays as materialized (
    select count(distinct r.relay) + 1 as live
    from tidegate.relay r
    where r.expires_at > now() and r.relay <> $1
),
share as materialized (
    select (64 + r.live - 1) / r.live as lanes, l.held, l.unknown, l.free
    from relays r
    cross join (
        select count(m.lane) as held,
            count(*) filter (where l.relay = $1 and m.lane is null) as unknown,
            count(*) filter (where tidegate.is_free(l.relay, $1)) as free
        from tidegate.lane l
        left join mine m on m.lane = l.lane
    ) l
)
select r.live, s.lanes as share, s.unknown, m.lane, m.disturbed,
    least(greatest(s.lanes - s.held, 0), s.free + s.unknown) as wanted
from relays r
cross join durable
cross join share s
left join mine m on true
