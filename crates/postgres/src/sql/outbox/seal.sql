-- How many messages of a segment were sent, and whether some are still to be read. `message_0` stands for the
-- segment.
--
-- Indexes: by id of the segment, from the first cursor on; the primary key of aside.
select (
        select count(*)
        from tidegate.message_0 m
        where not exists (
            select from tidegate.aside a where a.lane = tidegate.lane_of(m.key, m.id) and a.id = m.id
        )
    ) as messages,
    exists (
        select
        from tidegate.message_0 m
        join tidegate.lane l on l.lane = tidegate.lane_of(m.key, m.id)
        where m.id > (
                select min(c.cursor)
                from (select cursor from tidegate.lane union all select cursor from tidegate.lag) c
            )
            and m.id > least(l.cursor, (
                select min(g.cursor) from tidegate.lag g where g.lane = l.lane
            ))
    ) as unread
from (select) as one
