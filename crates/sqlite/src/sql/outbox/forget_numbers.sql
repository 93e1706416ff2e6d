-- Forgets the numbers of relays that have no lanes: they begin anew when they get some. Reads one row per lane and
-- relay.
DELETE FROM settlement
WHERE relay NOT IN (SELECT lane.relay FROM lane WHERE lane.relay IS NOT NULL)
