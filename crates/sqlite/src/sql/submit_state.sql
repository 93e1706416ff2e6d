-- The state of a batch. Served by the key of batch.
SELECT state FROM batch WHERE id = ?1
