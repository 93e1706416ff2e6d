-- Messages in the order of their ids.
--
-- Index: by id, of each segment.
--
-- $1 behind this id, $2 at most
select id, payload
from tidegate.message
where id > $1
order by id
limit $2
