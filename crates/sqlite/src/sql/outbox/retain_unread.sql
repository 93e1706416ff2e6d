-- The first message that may still be to be read. Served by message_lane, once per lane.
SELECT id FROM outbox_unread
