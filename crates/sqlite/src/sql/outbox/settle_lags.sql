-- Sinks that lag, from an array of [lane, sink, topics, globs, cursor]. Served by the key of lag.
INSERT INTO lag (lane, sink, topics, globs, cursor)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4
FROM json_each(?1)
