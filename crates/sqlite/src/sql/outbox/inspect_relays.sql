-- The relays that live at ?1, and how many lanes each has. Reads one row per relay and lane.
SELECT relay, (SELECT count(*) FROM lane WHERE lane.relay = relay.relay) AS lanes
FROM relay
WHERE expires_ms > ?1
ORDER BY relay
