-- Forgets sinks that take messages of relay ?1 again: all but those of ?2, as [name, …]; and what relays
-- said that were not heard of until ?3. A scan: there is a row per sink in trouble.
DELETE FROM sink_trouble
WHERE CASE relay
    WHEN ?1 THEN sink NOT IN (SELECT json_extract(value, '$[0]') FROM json_each(?2))
    ELSE until_ms <= ?3
END
