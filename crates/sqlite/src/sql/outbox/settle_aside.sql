-- Sets messages aside, or once more, from an array of [id, lane, topic, key, sink, state, attempts,
-- reason, what its death means, due time]. What somebody dropped meanwhile is passed over. Served by the
-- keys of message and aside.
INSERT INTO aside
    (id, lane, topic, key_hash, sink, state, attempts, reason, on_dead, due_ms)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
    value ->> 5, value ->> 6, value ->> 7, value ->> 8, value ->> 9
FROM json_each(?1)
WHERE EXISTS (SELECT 1 FROM message WHERE message.id = value ->> 0)
ON CONFLICT (id) DO UPDATE
SET sink = excluded.sink, state = excluded.state,
    reason = CASE WHEN excluded.reason = '' THEN reason ELSE excluded.reason END,
    on_dead = excluded.on_dead, due_ms = excluded.due_ms,
    attempts = max(attempts, excluded.attempts)
