-- Notes about the pace of sinks, the newest first. A scan: there is a row per load, not per record.
--
-- $1 only this batch or null, $2 only this sink or null, $3 at most
select batch_id, worker, sink, body,
    (extract(epoch from clock_timestamp() - updated_at) * 1000)::bigint as age_ms
from tidegate.pace
where ($1 is null or batch_id = $1) and ($2 is null or sink = $2)
order by updated_at desc
limit $3
