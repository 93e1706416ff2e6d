-- Leases free lanes to a relay. One row per lane that it got.
--
-- Indexes: the primary keys of lane (64 rows) and progress.
--
-- $1 relay, $2 lease in ms, $3 most lanes, $4 whether it holds none
select t.lane, t.fence, t.cursor, t.before
from tidegate.take($1, $2, $3, $4) as t
order by t.lane
