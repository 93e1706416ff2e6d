-- The first ?7 behind ?6 of what was set aside, in state ?1, with ids ?2, on topic ?3, for sink ?4, and
-- with ?5 in its reason, each or null. Served by the keys of aside and message.
SELECT
    aside.id, aside.topic, message.key, aside.sink, aside.state, aside.attempts, aside.reason,
    aside.on_dead, aside.due_ms
FROM aside
JOIN message ON message.id = aside.id
WHERE aside.id > ?6 AND (?1 IS NULL OR aside.state = ?1)
    AND (?2 IS NULL OR aside.id IN (SELECT value FROM json_each(?2)))
    AND (?3 IS NULL OR aside.topic = ?3) AND (?4 IS NULL OR aside.sink = ?4)
    AND (?5 IS NULL OR instr(aside.reason, ?5) > 0)
ORDER BY aside.id
LIMIT ?7
