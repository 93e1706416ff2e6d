-- The keys that wait for what was set aside, one page from a place on. See migrations/0021_take_over.sql.
--
-- $1 lanes, $2 most; where it begins: $3 lane, $4 sink, $5 key, $6 id
select p.lane, p.sink, p.key_hash, p.id
from tidegate.keys_page($1, $2, $3, $4, $5, $6) as p
