-- Closes a batch. Served by the key of batch.
UPDATE batch SET state = ?2, finished_ms = ?3, digest = ?4, aggregates = ?5 WHERE id = ?1
