-- The sinks that take nothing at ?1, each with the oldest note. A scan: there is a row per sink in trouble.
SELECT sink, reason, min(since_ms) AS since_ms, count(*) AS relays
FROM sink_trouble
WHERE until_ms > ?1
GROUP BY sink
ORDER BY sink
