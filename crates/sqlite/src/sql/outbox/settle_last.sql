-- The number of the last settlement of the relay that has one of the leases ?1, an array of [lane, fence, cursor].
-- Served by the keys of lane and settlement.
SELECT coalesce(settlement.number, 0) AS number
FROM json_each(?1) AS moved
CROSS JOIN lane ON lane.lane = moved.value ->> 0 AND lane.fence = moved.value ->> 1
LEFT JOIN settlement ON settlement.relay = lane.relay
LIMIT 1
