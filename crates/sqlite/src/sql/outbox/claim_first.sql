-- The first message to be read: ?1 is an array of [lane, after]. Served by message_lane.
SELECT min((
    SELECT min(message.id)
    FROM message
    WHERE message.lane = place.value ->> 0 AND message.id > place.value ->> 1
))
FROM json_each(?1) AS place
