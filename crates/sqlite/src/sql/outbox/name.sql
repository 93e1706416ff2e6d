-- What makes ids of messages unique among outboxes. Reads one row.
SELECT name FROM outbox_state WHERE one = 1
