-- What goes to another sink now waits there in its key's line, or is due at ?2 if it has no key. What
-- nobody takes any more has no route. ?1 is an array of [id, sink]. Served by the key of aside.
UPDATE aside
SET sink = found.value ->> 1,
    state = CASE
        WHEN state = 'dead' THEN state
        WHEN found.value ->> 1 = '' THEN 'unrouted'
        WHEN state = 'later' THEN state
        WHEN key_hash IS NULL THEN 'retry'
        ELSE 'behind'
    END,
    due_ms = CASE WHEN state IN ('dead', 'later') THEN due_ms ELSE ?2 END
FROM json_each(?1) AS found
WHERE aside.id = found.value ->> 0
