-- How many messages of a segment were sent; null if some are still to be read. `message_0` stands for the
-- segment.
--
-- Indexes: by id of the segment, from the first cursor on and as a whole; aside is read as a whole.
with lane as materialized (
    select l.lane, tidegate.all_read_to(l.cursor, l.state) as read_to from tidegate.lanes l
)
select case when not u.unread then (
        select count(*)
        from tidegate.message_0 m
        where not exists (select from tidegate.aside a where a.id = m.id)
    ) end as messages
from (
    select exists (
        select
        from tidegate.message_0 m
        join lane l on l.lane = tidegate.lane_of(m.key, m.id)
        where m.id > (select min(read_to) from lane) and m.id > l.read_to
    ) as unread
) u
