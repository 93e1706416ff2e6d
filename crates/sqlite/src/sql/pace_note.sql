-- What worker ?2 knows about the pace of sink ?3 for batch ?1. Served by the key of pace.
INSERT INTO pace (batch_id, worker, sink, body, updated_ms)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (batch_id, worker) DO UPDATE
SET sink = excluded.sink, body = excluded.body, updated_ms = excluded.updated_ms
