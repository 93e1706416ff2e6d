-- Frees lanes of relay ?1 that are not among ?2. Reads one row per lane.
UPDATE lane
SET relay = NULL, fence = 0
WHERE relay = ?1 AND lane NOT IN (SELECT value FROM json_each(?2))
