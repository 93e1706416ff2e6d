-- How many messages are outstanding, or more. Served by message_lane, once per lane, and by
-- aside_state.
SELECT messages FROM outbox_outstanding
