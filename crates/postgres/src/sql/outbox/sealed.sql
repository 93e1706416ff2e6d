-- The next messages of a segment that were sent, oldest first. `message_0` stands for the segment.
--
-- Indexes: by id of the segment; the primary key of aside.
--
-- $1 after, $2 most
select m.id, l.lane, m.topic, m.key, m.payload, m.headers::text as headers, m.published_at
from tidegate.message_0 m
cross join lateral (select tidegate.lane_of(m.key, m.id) as lane) l
where m.id > $1
    and not exists (select from tidegate.aside a where a.lane = l.lane and a.id = m.id)
order by m.id
limit $2
