-- The segments with messages that were closed long enough ago and that nobody is truncating, the oldest first.
--
-- $1 age in ms
select s.segment, s.turn
from tidegate.segment s
where s.closed_at <= now() - $1 * interval '1 ms' and s.discarding_until <= now()
    and not tidegate.is_empty(s.segment)
order by s.turn
