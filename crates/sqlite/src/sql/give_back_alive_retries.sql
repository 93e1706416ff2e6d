-- Takes back the loss of those of the retries ?2 that were lost under fence ?3, as their worker is alive.
-- Served by the key of exception.
UPDATE exception
SET lost = NULL, tries = tries - 1
WHERE batch_id = ?1
    AND idx IN (SELECT value FROM json_each(?2))
    AND state = 'retry'
    AND lost = ?3
