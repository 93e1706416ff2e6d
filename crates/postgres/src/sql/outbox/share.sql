-- Says that a relay lives, and tells how many lanes it may take, up to its even share. One row per lane that it
-- still holds; `disturbed` tells those where somebody changed what was set aside. At least one row, with the number
-- of relays and lanes, and those of its lanes of which it does not know. Without an epoch nothing of this counts: one
-- has to begin first. Who looks for relays that live no longer
-- locks their lanes first, as this does. Before lanes are leased, it looks for message ids that start anew.
--
-- Indexes: the primary keys of lane (64 rows) and relay; those by id of messages for a few.
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
    on conflict do nothing
),
-- A copy of this that arrives late deletes nothing that came after it.
lived as (
    delete from tidegate.relay r
    where r.relay = $1 and r.expires_at > now() and r.said_at < now()
),
-- Those that ended without a word; whoever begins looks for older ones.
ended as (
    delete from tidegate.relay r
    using (
        select e.expires_at, e.relay
        from tidegate.relay e
        where e.expires_at <= now() and e.expires_at > now() - interval '1 minute'
        for update skip locked
    ) e
    where r.expires_at = e.expires_at and r.relay = e.relay
),
relays as materialized (
    select count(distinct r.relay) + 1 as live
    from tidegate.relay r
    where r.expires_at > now() and r.relay <> $1
),
share as materialized (
    select (64 + r.live - 1) / r.live as lanes, l.*
    from relays r
    cross join (
        select count(m.lane) as held,
            array_agg(l.lane) filter (where l.relay = $1 and m.lane is null) as unknown_lanes,
            array_agg(l.fence) filter (where l.relay = $1 and m.lane is null) as unknown_fences,
            count(*) filter (where tidegate.is_free(l.relay, $1)) as free
        from tidegate.lane l
        left join mine m on m.lane = l.lane
    ) l
)
select tidegate.current_epoch() as epoch,
    coalesce((select e.ids_restarted from tidegate.epoch e), false)
        or w.wanted > 0 and tidegate.has_restarted_ids() as ids_restarted,
    r.live, s.lanes as share, m.lane, m.disturbed,
    coalesce(s.unknown_lanes, '{}') as unknown_lanes, coalesce(s.unknown_fences, '{}') as unknown_fences,
    w.wanted
from relays r
cross join durable
cross join share s
cross join lateral (
    select least(greatest(s.lanes - s.held, 0), s.free + coalesce(cardinality(s.unknown_lanes), 0)) as wanted
) w
left join mine m on true
