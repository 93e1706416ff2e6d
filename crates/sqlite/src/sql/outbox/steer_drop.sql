-- Removes dead messages among the ids ?1 from what was set aside: those on topic ?2, for sink ?3, and with ?4 in
-- their reason, each or null. Served by the key of aside; the plus sign keeps it from looking at all that is dead.
DELETE FROM aside
WHERE +state = 'dead' AND id IN (SELECT value FROM json_each(?1))
    AND (?2 IS NULL OR topic = ?2) AND (?3 IS NULL OR sink = ?3)
    AND (?4 IS NULL OR instr(reason, ?4) > 0)
RETURNING id, lane, sink, key_hash
