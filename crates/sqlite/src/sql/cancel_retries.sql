-- Takes a batch's retries away from their holders. Served by exception_held.
UPDATE exception INDEXED BY exception_held
SET fence = NULL, worker = NULL
WHERE batch_id = ?1 AND fence IS NOT NULL
