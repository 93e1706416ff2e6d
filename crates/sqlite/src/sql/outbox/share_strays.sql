-- The first ?1 messages that are in no lane and were not set aside. Served by message_lane and the key of aside.
SELECT id, lane, topic, key, headers, payload, published_ms, not_before_ms
FROM message
WHERE (lane < 0 OR lane > 63) AND NOT EXISTS (SELECT 1 FROM aside WHERE aside.id = message.id)
LIMIT ?1
