-- What has no route in the lanes ?1. Served by aside_state.
SELECT id, topic
FROM aside
WHERE state = 'unrouted' AND lane IN (SELECT value FROM json_each(?1))
