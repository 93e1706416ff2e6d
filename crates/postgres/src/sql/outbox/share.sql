-- Says that a relay lives, renews the lanes that it still holds, and gives it free ones up to its even
-- share. One row per lane that it has now; `gained` tells the new ones,
-- `disturbed` those where somebody changed what was set aside. At least one row, with the
-- number of relays and lanes.
--
-- Indexes: the primary keys of lane (64 rows) and relay.
--
-- $1 relay, $2 lease in ms, $3 lanes held, $4 their fences
with durable as materialized (
    -- A fence that a crash takes back would be given to two.
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
    select (64 + r.live - 1) / r.live as lanes, (select count(*) from mine) as held
    from relays r
),
free as materialized (
    select l.lane
    from tidegate.lane l
    where l.expires_at <= now() and l.lane not in (select lane from mine)
    order by l.lane
    limit (select greatest(s.lanes - s.held, 0) from share s)
    for update of l skip locked
),
renewed as (
    update tidegate.lane l
    set expires_at = now() + $2 * interval '1 ms', relay = $1
    from mine m
    where l.lane = m.lane
    returning l.lane, l.fence, l.cursor, m.disturbed
),
taken as (
    update tidegate.lane l
    set fence = nextval('tidegate.fence'), relay = $1, disturbed = false, settled = 0,
        expires_at = now() + $2 * interval '1 ms'
    from free f
    where l.lane = f.lane
    returning l.lane, l.fence, l.cursor, l.before
)
select r.live, s.lanes, s.held, h.lane, h.fence, h.cursor, h.before, h.gained, h.disturbed
from relays r
cross join durable
cross join share s
left join (
    select lane, fence, cursor, null as before, false as gained, disturbed from renewed
    union all
    select lane, fence, cursor, before::text, true, false from taken
) h on true
order by h.lane
