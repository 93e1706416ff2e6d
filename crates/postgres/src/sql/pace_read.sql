-- Notes about the pace of sinks, the newest first.
--
-- Index: pace_recent, which leads to the few that are recent; for people a scan, as there is a row per load and not
-- per record.
--
-- $1 only this batch or null, $2 only this sink or null, $3 only those of the last so many milliseconds or null, $4 at
-- most
select batch_id, worker, sink, body,
    (extract(epoch from clock_timestamp() - updated_at) * 1000)::bigint as age_ms
from tidegate.pace
where ($1 is null or batch_id = $1)
    and ($2 is null or sink = $2)
    and updated_at >= coalesce(clock_timestamp() - $3 * interval '1 millisecond', '-infinity')
order by updated_at desc
limit $4
