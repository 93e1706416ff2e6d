-- Moves lanes on for which nothing is set aside or lags: what settle.sql does for them, in a statement that
-- is planned in a moment. Returns the lanes that it moved.
--
-- Indexes: the primary keys.
--
-- $1 lease in ms; lanes: $2 lane, $3 fence, $4 cursor, $5 what was done before; $6 number of the settlement
with held as materialized (
    select l.lane, a.cursor, a.before::jsonb as before
    from tidegate.lane l
    join unnest($2, $3, $4, $5) as a (lane, fence, cursor, before)
        on a.lane = l.lane and a.fence = l.fence
    where l.settled <= $6
    order by l.lane
    for update of l
),
moved as (
    update tidegate.lane l
    set cursor = greatest(l.cursor, h.cursor), before = h.before, settled = $6,
        expires_at = now() + $1 * interval '1 ms'
    from held h
    where l.lane = h.lane
),
caught_up as (
    delete from tidegate.lag g
    using held h
    where g.lane = h.lane
)
select array(select lane from held) as held
from (select) as one
