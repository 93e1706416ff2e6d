-- Gives the retries that a lease still holds more time. Served by exception_held.
UPDATE exception INDEXED BY exception_held
SET due_ms = ?3
WHERE batch_id = ?1 AND fence = ?2 AND state = 'retry'
