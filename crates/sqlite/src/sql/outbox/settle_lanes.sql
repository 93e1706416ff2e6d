-- Moves lanes on: ?1 is an array of [lane, fence, cursor]. Those whose fence does not hold are passed over. Served
-- by the key of lane.
UPDATE lane
SET cursor = max(cursor, moved.value ->> 2)
FROM json_each(?1) AS moved
WHERE lane.lane = moved.value ->> 0 AND lane.fence = moved.value ->> 1
RETURNING lane.lane
