-- Those of the array ?1 of [lane, fence] that are still held. Served by the key of lane.
SELECT lane.lane
FROM json_each(?1) AS held
CROSS JOIN lane ON lane.lane = held.value ->> 0 AND lane.fence = held.value ->> 1
