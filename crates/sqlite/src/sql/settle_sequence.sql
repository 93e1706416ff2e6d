-- The sequence of what a worker settled last of a batch. Served by the key of part.
SELECT sequence FROM part WHERE batch_id = ?1 AND accumulator = ?2
