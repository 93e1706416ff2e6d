-- The messages ?1. Served by the key of message.
SELECT id, lane, topic, key, headers, payload, published_ms, not_before_ms
FROM message
WHERE id IN (SELECT value FROM json_each(?1))
ORDER BY id
