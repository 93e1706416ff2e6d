-- The first ?3 messages behind ?1 and up to ?2 that were sent. Served by the keys of message and aside.
SELECT id, lane, topic, key, headers, payload, published_ms, not_before_ms
FROM message
WHERE id > ?1 AND id <= ?2 AND +lane BETWEEN 0 AND 63
    AND NOT EXISTS (SELECT 1 FROM aside WHERE aside.id = message.id)
ORDER BY id
LIMIT ?3
