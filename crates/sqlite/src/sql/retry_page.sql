-- The first dead run of a batch from index ?2 on and behind ?3 others. Served by exception_dead.
SELECT idx
FROM exception INDEXED BY exception_dead
WHERE batch_id = ?1 AND state = 'dead' AND idx >= ?2
ORDER BY idx
LIMIT 1 OFFSET ?3
