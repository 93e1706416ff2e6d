-- The limit on outstanding messages. Reads one row.
SELECT most_outstanding FROM outbox_state WHERE one = 1
