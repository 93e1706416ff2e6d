-- Publishes messages at ?3 in their order: ?1 is an array of [topic, key, headers, due time, first byte
-- of the payload in ?2, its length]. Served by the key of message.
INSERT INTO message (topic, key, headers, published_ms, not_before_ms, payload)
SELECT
    entry.value ->> 0,
    entry.value ->> 1,
    entry.value ->> 2,
    ?3,
    entry.value ->> 3,
    substr(?2, entry.value ->> 4, entry.value ->> 5)
FROM json_each(?1) AS entry
ORDER BY entry.key
RETURNING id
