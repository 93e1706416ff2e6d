-- Removes those of the retries ?2 that are held. Served by the key of exception.
DELETE FROM exception
WHERE batch_id = ?1
    AND idx IN (SELECT value FROM json_each(?2))
    AND state = 'retry'
    AND fence = ?3
