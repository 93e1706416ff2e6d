-- Writes exceptions from an array of [index, attempts, reason, due time or null if dead]. Served by
-- the key of exception.
INSERT INTO exception (batch_id, idx, attempts, state, reason, due_ms)
SELECT
    ?1,
    value ->> 0,
    value ->> 1,
    CASE WHEN value ->> 3 IS NULL THEN 'dead' ELSE 'retry' END,
    value ->> 2,
    value ->> 3
FROM json_each(?2)
