-- The sinks of ?2, as [name, reason, since when in ms], are in trouble for relay ?1, which is believed until ?3. Served
-- by the key of sink_trouble.
INSERT INTO sink_trouble (relay, sink, reason, since_ms, until_ms)
SELECT ?1, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), ?3 FROM json_each(?2)
WHERE true
ON CONFLICT (relay, sink) DO UPDATE
SET reason = excluded.reason, since_ms = excluded.since_ms, until_ms = excluded.until_ms
