-- Finds the sinks of what was set aside anew, one page from a place on. See migrations/0021_take_over.sql.
--
-- $1 lanes; routes in the order in which they decide: $2 regular expressions, $3 sinks; $4 most; $5 lane, $6 id
select p.at_lane as lane, p.at_id as id
from tidegate.reroute_page($1, $2, $3, $4, $5, $6) as p
