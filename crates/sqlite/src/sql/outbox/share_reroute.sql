-- What had no route and has one now waits in its key's line, or is due at ?2 if it has no key: ?1 is an
-- array of [id, sink]. Served by the key of aside.
UPDATE aside
SET sink = found.value ->> 1,
    state = CASE WHEN key_hash IS NULL THEN 'retry' ELSE 'behind' END,
    due_ms = ?2
FROM json_each(?1) AS found
WHERE aside.id = found.value ->> 0
