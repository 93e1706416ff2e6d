-- The last audit lines of an adopted table, newest first. $1 adopted, $2 most
select (extract(epoch from a.at) * 1000)::bigint as at_ms, a.who, a.what, a.messages, a.why
from tidegate.adopted_audit a
where a.adopted = $1
order by a.at desc
limit $2
