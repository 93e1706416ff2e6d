-- Finds the first message of every key anew, from a place on, and returns the keys. See
-- migrations/0023_adopted_due.sql.
--
-- $1 adopted, $2 most; where it begins: $3 sink, $4 key, $5 id
select t.at_sink, t.at_key, t.at_id, t.sinks, t.keys
from tidegate.take_adopted_page($1, $2, $3, $4, $5) as t
