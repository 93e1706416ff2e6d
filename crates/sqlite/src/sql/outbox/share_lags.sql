-- The sinks that lag in the lanes ?1. Served by the key of lag.
SELECT lane, sink, topics, cursor
FROM lag
WHERE lane IN (SELECT value FROM json_each(?1))
ORDER BY lane, sink
