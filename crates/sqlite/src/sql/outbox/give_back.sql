-- Gives lanes back, those of the array ?1 of [lane, fence] that are still held. What a relay sent
-- before and arrives later is late. Served by the key of lane.
UPDATE lane
SET relay = NULL, fence = 0
FROM json_each(?1) AS held
WHERE lane.lane = held.value ->> 0 AND lane.fence = held.value ->> 1
