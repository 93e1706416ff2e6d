-- Sends what was set aside to the sinks of present routes, from a place on. See migrations/0023_adopted_due.sql.
--
-- $1 adopted; routes in the order in which they decide: $2 regular expressions, $3 sinks; $4 most; where it begins,
-- or null: $5 topic, $6 sink
select r.at_topic, r.at_sink, r.more
from tidegate.reroute_adopted_page($1, $2, $3, $4, $5, $6) as r
