-- The first ?2 lanes that are free for relay ?1; relays that are gone are forgotten. Reads one row per lane.
SELECT lane
FROM lane
WHERE relay IS NULL OR relay <> ?1 AND relay NOT IN (SELECT relay.relay FROM relay)
ORDER BY lane
LIMIT ?2
