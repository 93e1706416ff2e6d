-- Finds a closed segment whose messages are old enough and all read, and how many of them were sent.
--
-- Index: message_lane, from its end, lane by lane.
--
-- $1 age in ms
select s.segment, c.messages
from tidegate.segment s
cross join lateral (
    select count(*) as messages
    from tidegate.message m
    where m.segment = s.segment
        and not exists (select from tidegate.aside a where a.lane = m.lane and a.id = m.id)
) c
where s.closed_at <= now() - $1 * interval '1 ms'
    and not exists (
        select
        from tidegate.lane l
        cross join lateral (
            select m.id
            from tidegate.message m
            where m.segment = s.segment and m.lane = l.lane
            order by m.id desc
            limit 1
        ) m
        where m.id > least(l.cursor, (
            select min(g.cursor) from tidegate.lag g where g.lane = l.lane
        ))
    )
    and exists (select from tidegate.message m where m.segment = s.segment)
order by s.closed_at
limit 1
