-- The first ?3 messages from ?1 to ?2, without what makes them wide. Served by the key of message.
SELECT id, lane, topic, length(payload) AS bytes
FROM message
WHERE id BETWEEN ?1 AND ?2
ORDER BY id
LIMIT ?3
