-- The first ?2 lanes that are free at ?1 and not among ?3. Reads one row per lane.
SELECT lane
FROM lane
WHERE expires_ms <= ?1 AND lane NOT IN (SELECT value FROM json_each(?3))
ORDER BY lane
LIMIT ?2
