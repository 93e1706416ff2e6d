-- One message, whatever became of it.
--
-- Indexes: by id of each segment; aside_dead does not help, its primary key does, lane by lane.
--
-- $1 id
select m.id, tidegate.lane_of(m.key, m.id) as lane, m.topic, m.key, m.payload, m.headers::text as headers,
    m.published_at,
    (select s.state = 'sent' from tidegate.messages s where s.id = m.id limit 1) as sent
from tidegate.message m
where m.id = $1
union all
select a.id, a.lane, a.topic, a.key, a.payload, a.headers::text,
    a.published_at, false
from tidegate.aside a
where a.lane between 0 and 63 and a.id = $1 and a.payload is not null
limit 1
