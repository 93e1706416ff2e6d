-- Moves a batch's cursor behind its last leased range. Served by the key of batch.
UPDATE batch SET cursor = ?2 WHERE id = ?1
