-- How many messages of a segment were sent; null if some are still to be read. `message_0` stands for the
-- segment.
--
-- Indexes: by id of the segment, from the first cursor on and as a whole; aside is read as a whole.
select case when not u.unread then (
        select count(*)
        from tidegate.message_0 m
        where not exists (select from tidegate.aside a where a.id = m.id)
    ) end as messages
from (
    select exists (
        select
        from tidegate.message_0 m
        join tidegate.position l on l.lane = tidegate.lane_of(m.key, m.id)
        where m.id > (
                select min(c.cursor)
                from (select cursor from tidegate.position union all select cursor from tidegate.lag) c
            )
            and m.id > least(l.cursor, (
                select min(g.cursor) from tidegate.lag g where g.lane = l.lane
            ))
    ) as unread
) u
