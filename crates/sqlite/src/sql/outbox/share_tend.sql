-- Makes the first that waits of every key in the lanes ?1 due at ?2, unless one before it holds the key.
-- Served by aside_key and the key of aside.
-- The plus sign keeps it from looking at all that wait.
UPDATE aside
SET state = 'retry', due_ms = ?2
WHERE +state = 'behind' AND id IN (
    SELECT min(first.id)
    FROM aside AS first
    WHERE first.holds = 1 AND first.lane IN (SELECT value FROM json_each(?1))
    GROUP BY first.lane, first.sink, first.key_hash
)
