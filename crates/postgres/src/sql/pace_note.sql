-- What a worker knows about the pace of a sink, over what it wrote before.
--
-- Index: the key of pace.
--
-- $1 batch, $2 worker, $3 sink, $4 body
insert into tidegate.pace (batch_id, worker, sink, body)
values ($1, $2, $3, $4)
on conflict (batch_id, worker) do update
set sink = excluded.sink, body = excluded.body, updated_at = clock_timestamp()
