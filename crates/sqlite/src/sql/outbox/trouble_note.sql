-- The sinks of ?2, as [name, reason], take nothing from relay ?1 at ?3, which is believed until ?4. Since when is
-- kept. Served by the key of sink_trouble.
INSERT INTO sink_trouble (relay, sink, reason, since_ms, until_ms)
SELECT ?1, json_extract(value, '$[0]'), json_extract(value, '$[1]'), ?3, ?4 FROM json_each(?2)
WHERE true
ON CONFLICT (relay, sink) DO UPDATE SET reason = excluded.reason, until_ms = excluded.until_ms
