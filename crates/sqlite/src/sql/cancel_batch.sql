-- Stops a batch. Served by the key of batch.
UPDATE batch SET state = 'cancelled', finished_ms = ?2 WHERE id = ?1
