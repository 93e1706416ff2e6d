-- Finds the first message of every key in some lanes anew, from a place on. See migrations/0013_steer.sql.
--
-- $1 lanes, $2 most; where it begins: $3 lane, $4 sink, $5 key, $6 id
select t.at_lane, t.at_sink, t.at_key, t.at_id
from tidegate.tend_page($1, $2, $3, $4, $5, $6) as t
