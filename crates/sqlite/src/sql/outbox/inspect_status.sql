-- How the messages on each topic stand. Served by message_lane from each cursor on, and the keys of
-- aside and message; what was set aside is read as a whole.
--
-- Of each key that is parked, the message for which the later ones wait.
WITH parked AS MATERIALIZED (
    SELECT lane, sink, key_hash, min(id) AS id
    FROM aside
    WHERE state = 'dead' AND on_dead = 'park' AND holds = 1
    GROUP BY lane, sink, key_hash
),
counted (topic, state, dead, published_ms) AS (
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
        stuck.state = 'dead' OR stuck.state = 'behind' AND ifnull(parked.id < stuck.id, 0),
        message.published_ms
    FROM aside AS stuck
    JOIN message ON message.id = stuck.id
    LEFT JOIN parked
        ON parked.lane = stuck.lane AND parked.sink = stuck.sink AND parked.key_hash = stuck.key_hash
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
