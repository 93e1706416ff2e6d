-- Sets the limit on outstanding messages; null: none. Changes one row.
UPDATE outbox_state SET most_outstanding = ?1 WHERE one = 1
