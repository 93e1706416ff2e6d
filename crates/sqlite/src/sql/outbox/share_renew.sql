-- Lets lanes last until ?2 and names their relay ?3, for those of the array ?1 of [lane, fence] that are
-- still held. Served by the key of lane.
UPDATE lane
SET expires_ms = ?2, relay = ?3
FROM json_each(?1) AS held
WHERE lane.lane = held.value ->> 0 AND lane.fence = held.value ->> 1
RETURNING lane.lane
