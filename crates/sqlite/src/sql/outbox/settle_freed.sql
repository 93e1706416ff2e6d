-- Which of the keys ?1, an array of [lane, sink, key], nothing holds any more, by their place in it.
-- Served by aside_key.
SELECT touched.key
FROM json_each(?1) AS touched
WHERE NOT EXISTS (
    SELECT 1
    FROM aside
    WHERE aside.lane = touched.value ->> 0 AND aside.sink = touched.value ->> 1
        AND aside.key_hash = touched.value ->> 2 AND aside.holds = 1
)
ORDER BY touched.key
