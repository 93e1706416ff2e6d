-- What was set aside behind a cursor: ?1 is an array of [lane, cursor]. Served by aside_lane.
SELECT aside.lane, aside.id
FROM json_each(?1) AS place
CROSS JOIN aside ON aside.lane = place.value ->> 0 AND aside.id > place.value ->> 1
ORDER BY aside.id
