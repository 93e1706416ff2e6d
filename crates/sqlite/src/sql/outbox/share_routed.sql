-- What was set aside in the lanes ?1 and may go to another sink now. Served by aside_lane.
SELECT id, topic, sink
FROM aside
WHERE lane IN (SELECT value FROM json_each(?1)) AND (state <> 'dead' OR on_dead <> 'skip')
