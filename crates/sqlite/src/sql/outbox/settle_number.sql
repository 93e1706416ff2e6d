-- Notes that settlement ?2 is the last of the relay that has one of the leases ?1, an array of [lane, fence, cursor], if
-- it is the next one or the last one once more. A row says that it is. Served by the keys of lane and settlement.
INSERT INTO settlement (relay, number)
SELECT lane.relay, ?2
FROM json_each(?1) AS moved
CROSS JOIN lane ON lane.lane = moved.value ->> 0 AND lane.fence = moved.value ->> 1
WHERE ?2 <= 1 OR EXISTS (SELECT 1 FROM settlement WHERE settlement.relay = lane.relay)
LIMIT 1
ON CONFLICT (relay) DO UPDATE SET number = excluded.number
WHERE excluded.number IN (settlement.number, settlement.number + 1)
RETURNING relay
