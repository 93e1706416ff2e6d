-- Makes the first that waits of the keys ?1, an array of [lane, sink, key], due at ?2, unless one before
-- it holds the key. Served by aside_key and the key of aside.
-- The plus sign keeps it from looking at all that wait.
UPDATE aside
SET state = 'retry', due_ms = ?2
WHERE +state = 'behind' AND id IN (
    SELECT (
        SELECT first.id
        FROM aside AS first
        WHERE first.lane = touched.value ->> 0 AND first.sink = touched.value ->> 1
            AND first.key_hash = touched.value ->> 2 AND first.holds = 1
        ORDER BY first.id
        LIMIT 1
    )
    FROM json_each(?1) AS touched
)
