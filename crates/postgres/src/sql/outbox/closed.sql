-- The segments with messages that were closed long enough ago, the oldest first.
--
-- $1 age in ms
select s.segment
from tidegate.segment s
where s.closed_at <= now() - $1 * interval '1 ms' and not tidegate.is_empty(s.segment)
order by s.closed_at
