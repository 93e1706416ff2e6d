-- The aggregates of a batch, by worker. Served by the key of part.
SELECT body FROM part WHERE batch_id = ?1
