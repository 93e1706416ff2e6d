-- Leases the lanes ?1 to relay ?3, with fences from ?2 on. Served by the key of lane.
UPDATE lane
SET fence = ?2 + taken.key, relay = ?3
FROM json_each(?1) AS taken
WHERE lane.lane = taken.value
RETURNING lane.lane, lane.fence, lane.cursor
