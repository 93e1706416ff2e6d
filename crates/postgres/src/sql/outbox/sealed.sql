-- Some messages of a segment that were sent, oldest first: those with the next $3 ids.
--
-- Index: message_lane, lane by lane.
--
-- $1 segment, $2 after, $3 most
with lo as materialized (
    select min(f.id) as id
    from tidegate.lane l
    cross join lateral (
        select m.id
        from tidegate.message m
        where m.segment = $1 and m.lane = l.lane and m.id > $2
            and not exists (select from tidegate.aside a where a.lane = m.lane and a.id = m.id)
        order by m.id
        limit 1
    ) f
)
select m.id, m.lane, m.topic, m.key, m.payload, m.headers::text as headers,
    m.published_at
from tidegate.lane l
cross join lo
cross join lateral (
    select *
    from tidegate.message m
    where m.segment = $1 and m.lane = l.lane and m.id >= lo.id and m.id < lo.id + $3
        and not exists (select from tidegate.aside a where a.lane = m.lane and a.id = m.id)
) m
order by m.id
