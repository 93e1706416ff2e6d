-- Moves lanes on: ?1 is an array of [lane, fence, cursor]. Those whose fence
-- does not hold, or that have a later settlement than ?2, are passed over. Served by the keys of lane and
-- settled.
UPDATE lane
SET cursor = max(cursor, moved.value ->> 2)
FROM json_each(?1) AS moved
WHERE lane.lane = moved.value ->> 0 AND lane.fence = moved.value ->> 1
    AND NOT EXISTS (
        SELECT 1
        FROM settled
        WHERE settled.lane = lane.lane AND settled.fence = lane.fence AND settled.number > ?2
    )
RETURNING lane.lane
