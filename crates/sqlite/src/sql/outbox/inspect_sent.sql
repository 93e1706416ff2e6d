-- Whether message ?1 was sent. Served by the keys of message, lane, lag and aside.
SELECT state = 'sent' FROM outbox WHERE id = ?1
