-- Overwrites a worker's aggregates. Served by the key of part.
INSERT INTO part (batch_id, accumulator, sequence, body) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET sequence = excluded.sequence, body = excluded.body
