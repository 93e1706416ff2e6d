-- The sinks that take nothing at the moment, each with the oldest note.
--
-- Index: the key of sink_trouble.
--
-- $1 outbox
select t.sink, (array_agg(t.reason order by t.since))[1] as reason, count(*) as relays,
    (extract(epoch from clock_timestamp() - min(t.since)) * 1000)::bigint as lasts_ms
from tidegate.sink_trouble t
where t.outbox = $1 and t.until > clock_timestamp()
group by t.sink
order by t.sink
