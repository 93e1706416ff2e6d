-- Pending rows by topic, for people. Touches nothing but the adopted table.
--
-- $1 not used, $2 values of the mapping
select {topic_shown} as topic, count(*) as messages, count(*) filter (where {key} is null) as keyless,
    (extract(epoch from now()) - min({published}) / 1000.0)::double precision as oldest_seconds
from {table} t
where {pending} and {filter}
group by 1
order by 1
