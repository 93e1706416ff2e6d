-- Finds the first message of every key anew, from a place on. See migrations/0017_adopted.sql.
--
-- $1 adopted, $2 most; where it begins: $3 sink, $4 key, $5 id
select t.at_sink, t.at_key, t.at_id
from tidegate.tend_adopted_page($1, $2, $3, $4, $5) as t
