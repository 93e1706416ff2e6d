-- Notes that settlement ?2 was the last of the lanes ?1 under their fences. Served by the key of lane.
INSERT INTO settled (lane, fence, number)
SELECT lane.lane, lane.fence, ?2
FROM json_each(?1) AS held
CROSS JOIN lane ON lane.lane = held.value
WHERE true
ON CONFLICT (lane) DO UPDATE SET fence = excluded.fence, number = excluded.number
