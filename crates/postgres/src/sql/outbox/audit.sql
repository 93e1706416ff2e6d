-- The last audit lines, newest first. $1 most
select (extract(epoch from a.at) * 1000)::bigint as at_ms, a.who, a.what, a.messages, a.why
from tidegate.audit a
order by a.at desc
limit $1
