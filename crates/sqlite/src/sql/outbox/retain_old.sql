-- The first ?2 messages before ?1 that were sent, with their times; what is in no lane was not. Served by the keys of message and
-- aside.
SELECT id, published_ms
FROM message
WHERE id < ?1 AND +lane BETWEEN 0 AND 63 AND NOT EXISTS (SELECT 1 FROM aside WHERE aside.id = message.id)
ORDER BY id
LIMIT ?2
