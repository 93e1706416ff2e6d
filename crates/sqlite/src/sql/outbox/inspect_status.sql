-- How the messages on each topic stand. Served by message_lane from each cursor on, aside_key, and the
-- keys of aside and message; what was set aside is read as a whole.
WITH counted (topic, state, dead, published_ms) AS (
    SELECT message.topic, 'unread', 0, message.published_ms
    FROM lane
    CROSS JOIN message ON message.lane = lane.lane AND message.id > lane.cursor
    WHERE NOT EXISTS (SELECT 1 FROM aside WHERE aside.id = message.id) AND NOT EXISTS (
        SELECT 1
        FROM lag
        CROSS JOIN json_each(lag.globs) AS choice
        WHERE lag.lane = message.lane AND message.topic GLOB choice.value ->> 'takes'
            AND NOT EXISTS (
                SELECT 1
                FROM json_each(choice.value, '$.unless') AS other
                WHERE message.topic GLOB other.value
            )
    )
    UNION ALL
    SELECT message.topic, 'unread', 0, message.published_ms
    FROM lag
    CROSS JOIN message ON message.lane = lag.lane AND message.id > lag.cursor
    WHERE NOT EXISTS (SELECT 1 FROM aside WHERE aside.id = message.id) AND EXISTS (
        SELECT 1
        FROM json_each(lag.globs) AS choice
        WHERE message.topic GLOB choice.value ->> 'takes' AND NOT EXISTS (
            SELECT 1
            FROM json_each(choice.value, '$.unless') AS other
            WHERE message.topic GLOB other.value
        )
    )
    UNION ALL
    SELECT
        stuck.topic,
        stuck.state,
        stuck.state = 'dead' OR stuck.state = 'behind' AND EXISTS (
            SELECT 1
            FROM aside AS parked
            WHERE parked.lane = stuck.lane AND parked.sink = stuck.sink
                AND parked.key_hash = stuck.key_hash AND parked.holds = 1 AND parked.id < stuck.id
                AND parked.state = 'dead' AND parked.on_dead = 'park'
        ),
        message.published_ms
    FROM aside AS stuck
    JOIN message ON message.id = stuck.id
)
SELECT
    topic,
    count(*) FILTER (WHERE NOT dead) AS outstanding,
    count(*) FILTER (WHERE state = 'retry') AS retrying,
    count(*) FILTER (WHERE state IN ('behind', 'later') AND NOT dead) AS waiting,
    count(*) FILTER (WHERE state = 'unrouted') AS unrouted,
    count(*) FILTER (WHERE dead) AS dead,
    min(published_ms) FILTER (WHERE NOT dead) AS oldest_ms
FROM counted
GROUP BY topic
ORDER BY topic
