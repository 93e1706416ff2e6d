-- Removes the messages up to ?1 that were sent. Served by the keys of message and aside.
DELETE FROM message
WHERE id <= ?1 AND +lane BETWEEN 0 AND 63 AND NOT EXISTS (SELECT 1 FROM aside WHERE aside.id = message.id)
