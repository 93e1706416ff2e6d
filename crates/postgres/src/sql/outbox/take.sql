-- Leases free lanes to a relay. One row per lane that it got.
--
-- Indexes: the primary keys of lane (64 rows), progress and relay.
--
-- $1 relay, $2 most lanes, $3 its lanes of which it does not know, $4 their fences
select t.lane, t.fence, t.cursor, t.state
from tidegate.take($1, $2, $3, $4) as t
order by t.lane
