-- The keys of the messages ?1 among what was set aside. Served by the key of aside.
SELECT DISTINCT lane, sink, key_hash
FROM aside
WHERE id IN (SELECT value FROM json_each(?1)) AND key_hash IS NOT NULL
