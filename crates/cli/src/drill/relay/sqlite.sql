-- All messages in the order of their ids.
--
-- Index: the key of message.
SELECT payload FROM message ORDER BY id
