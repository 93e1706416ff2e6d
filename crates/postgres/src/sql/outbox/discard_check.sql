-- Whether a segment still has as many messages that were sent as it had when it was sealed, and none
-- that is to be read. Whoever asks holds the segment's lock.
--
-- $1 segment, $2 messages
select count(*) filter (where a.id is null) = $2
    and count(*) filter (where a.id is null and m.id > least(l.cursor, g.cursor)) = 0 as same
from tidegate.message m
join tidegate.lane l on l.lane = m.lane
left join tidegate.aside a on a.lane = m.lane and a.id = m.id
left join (select lane, min(cursor) as cursor from tidegate.lag group by lane) g on g.lane = m.lane
where m.segment = $1
