-- Gives retries back: they are due at ?3, and were not lost. Served by exception_held.
UPDATE exception INDEXED BY exception_held
SET fence = NULL, worker = NULL, due_ms = ?3, tries = tries - 1
WHERE batch_id = ?1 AND fence = ?2 AND state = 'retry'
