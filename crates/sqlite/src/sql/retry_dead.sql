-- Makes all dead runs of a batch due at ?2, with no attempts used. Served by exception_dead.
UPDATE exception INDEXED BY exception_dead
SET state = 'retry', attempts = 0, due_ms = ?2
WHERE batch_id = ?1 AND state = 'dead'
