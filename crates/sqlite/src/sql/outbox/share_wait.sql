-- All others of every key in the lanes ?1 wait behind the first. Served by aside_retry, aside_key and the
-- key of aside.
UPDATE aside
SET state = 'behind'
WHERE id IN (
    SELECT other.id
    FROM json_each(?1) AS wanted
    CROSS JOIN aside AS other ON other.lane = wanted.value
    WHERE other.state = 'retry' AND other.key_hash IS NOT NULL
        AND EXISTS (
            SELECT 1
            FROM aside AS first
            WHERE first.lane = other.lane AND first.sink = other.sink
                AND first.key_hash = other.key_hash AND first.holds = 1 AND first.id < other.id
        )
)
