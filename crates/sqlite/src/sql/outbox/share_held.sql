-- The keys that wait in the lanes ?1. Served by aside_key.
SELECT DISTINCT lane, sink, key_hash
FROM aside
WHERE holds = 1 AND lane IN (SELECT value FROM json_each(?1))
ORDER BY lane, sink, key_hash
