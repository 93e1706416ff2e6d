-- Makes a batch running again. Served by the key of batch.
UPDATE batch
SET state = 'running', finished_ms = NULL, digest = NULL, aggregates = NULL
WHERE id = ?1
