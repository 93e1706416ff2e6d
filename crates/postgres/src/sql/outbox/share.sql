-- Says that a relay lives, renews the lanes that it still holds, and tells how many free ones there are up to
-- its even share. One row per lane that it has; `disturbed` tells those where somebody changed what was set
-- aside. At least one row, with the number of relays and lanes.
--
-- Indexes: the primary keys of lane (64 rows) and relay.
--
-- $1 relay, $2 lease in ms, $3 lanes held, $4 their fences
with durable as materialized (
    -- A lease that a crash takes back would be given to two.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
alive as (
    insert into tidegate.relay as r (relay, expires_at)
    values ($1, now() + $2 * interval '1 ms')
    on conflict (relay) do update set expires_at = excluded.expires_at
),
ended as (
    delete from tidegate.relay where expires_at <= now() and relay <> $1
),
relays as materialized (
    select count(*) + 1 as live from tidegate.relay where expires_at > now() and relay <> $1
),
mine as materialized (
    select l.lane, l.disturbed
    from tidegate.lane l
    join unnest($3, $4) as h (lane, fence) on h.lane = l.lane and h.fence = l.fence
    order by l.lane
    for update of l
),
share as materialized (
    select (64 + r.live - 1) / r.live as lanes,
        (select count(*) from mine) as held,
        (
            select count(*)
            from tidegate.lane l
            where l.expires_at <= now() and l.lane not in (select lane from mine)
        ) as free
    from relays r
),
renewed as (
    update tidegate.lane l
    set expires_at = now() + $2 * interval '1 ms'
    from mine m
    where l.lane = m.lane
    returning l.lane, m.disturbed
)
select r.live, s.lanes as share, least(greatest(s.lanes - s.held, 0), s.free) as wanted, h.lane, h.disturbed
from relays r
cross join durable
cross join share s
left join renewed h on true
