-- What was set aside beyond the place up to which its lane was read. See migrations/0021_take_over.sql.
--
-- $1 lanes, $2 most; where it begins: $3 lane, $4 id
select p.lane, p.id
from tidegate.beyond_page($1, $2, $3, $4) as p
