-- Gives lanes back before their time, and forgets a relay that ends. Lanes that were lost are passed
-- over. What a relay sent before and arrives later is late: it would lease the lane once more.
--
-- Indexes: the primary keys.
--
-- $1 relay, $2 whether it ends, $3 lanes, $4 their fences
with mine as materialized (
    select l.lane
    from tidegate.lane l
    join unnest($3, $4) as h (lane, fence) on h.lane = l.lane and h.fence = l.fence
    order by l.lane
    for update of l
),
ended as (
    delete from tidegate.relay where relay = $1 and $2
)
update tidegate.lane l
set expires_at = now(), relay = null, fence = 0
from mine m
where l.lane = m.lane
