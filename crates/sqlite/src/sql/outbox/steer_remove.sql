-- Removes the messages ?1: left where they were, they would count as sent. Served by the key of message.
DELETE FROM message WHERE id IN (SELECT value FROM json_each(?1))
