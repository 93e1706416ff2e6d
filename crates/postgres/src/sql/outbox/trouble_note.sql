-- The sinks that are in trouble for a relay, and no others. What relays said that are not
-- heard of any more is removed, unless somebody else is doing that.
--
-- Index: the key of sink_trouble.
--
-- $1 outbox, $2 relay, $3 sinks, $4 reasons, $5 how long it is believed, in milliseconds, $6 for how long
-- each is in trouble, in milliseconds
with expired as materialized (
    select t.outbox, t.relay, t.sink
    from tidegate.sink_trouble t
    where (t.outbox, t.relay) <> ($1, $2) and t.until <= clock_timestamp()
    order by t.outbox, t.relay, t.sink
    for update skip locked
),
removed as (
    delete from tidegate.sink_trouble t
    using expired e
    where t.outbox = e.outbox and t.relay = e.relay and t.sink = e.sink
),
mended as (
    delete from tidegate.sink_trouble t
    where t.outbox = $1 and t.relay = $2 and t.sink <> all ($3)
)
insert into tidegate.sink_trouble (outbox, relay, sink, reason, since, until)
select $1, $2, s.sink, s.reason, clock_timestamp() - s.lasts * interval '1 millisecond',
    clock_timestamp() + $5 * interval '1 millisecond'
from unnest($3, $4, $6) as s (sink, reason, lasts)
on conflict (outbox, relay, sink) do update
set reason = excluded.reason, since = excluded.since, until = excluded.until
