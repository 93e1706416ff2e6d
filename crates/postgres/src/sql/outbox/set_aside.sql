-- How many messages were set aside in lanes that a relay has just leased, counted up to a limit; and the number of
-- the relay's last settlement.
--
-- Indexes: the primary keys of aside and progress.
--
-- $1 lanes, $2 relay, $3 most
select l.lane, (select count(*) from (select from tidegate.aside a where a.lane = l.lane limit $3) a) as messages,
    coalesce((
        select p.number from tidegate.progress p where p.relay = $2 order by p.number desc limit 1
    ), 0) as settled
from unnest($1) as l (lane)
