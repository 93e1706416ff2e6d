-- Ends the hold of a lease on its retries. Served by exception_held.
UPDATE exception INDEXED BY exception_held
SET fence = NULL, worker = NULL
WHERE batch_id = ?1 AND fence = ?2
