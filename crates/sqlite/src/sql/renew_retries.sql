-- Gives those of the retries ?2 that are held time until ?4. Served by the key of exception.
UPDATE exception
SET due_ms = ?4
WHERE batch_id = ?1
    AND idx IN (SELECT value FROM json_each(?2))
    AND state = 'retry'
    AND fence = ?3
