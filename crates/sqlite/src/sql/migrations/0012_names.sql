-- Publishing by plain SQL refuses topics, keys and headers that are no valid text, and keys that are empty or have
-- control characters: what a relay would have to set aside never gets in. The view `outbox` shows every message,
-- also one whose headers are no JSON. May be applied twice.
--
-- Other programs write to it with SQLite libraries of their own: nothing here needs one newer than 3.38.

DROP VIEW IF EXISTS outbox;

-- Messages as people read them, and as any program publishes them in its own transaction:
--     INSERT INTO outbox (topic, key, payload, headers) VALUES ('orders', '42', '{"total": 3}', NULL)
CREATE VIEW outbox
    (id, topic, key, payload, headers, published_ms, not_before_ms, lane, state) AS
SELECT
    message.id,
    message.topic,
    message.key,
    CASE
        WHEN NOT coalesce(json_valid(message.headers), 1) THEN message.payload
        WHEN coalesce(message.headers ->> 'content-type', 'application/json') LIKE '%json%'
            OR message.headers ->> 'content-type' LIKE 'text/%'
            THEN CAST(message.payload AS TEXT)
        ELSE message.payload
    END,
    message.headers,
    message.published_ms,
    message.not_before_ms,
    message.lane,
    CASE
        WHEN aside.id IS NOT NULL THEN aside.state
        -- In no lane: a relay sets it aside when it looks after its lanes.
        WHEN lane.lane IS NULL THEN 'outstanding'
        WHEN message.id > coalesce((
            SELECT min(lag.cursor)
            FROM lag
            WHERE lag.lane = message.lane AND EXISTS (
                SELECT 1
                FROM json_each(lag.globs) AS choice
                WHERE message.topic GLOB choice.value ->> 'takes' AND NOT EXISTS (
                    SELECT 1
                    FROM json_each(choice.value, '$.unless') AS other
                    WHERE message.topic GLOB other.value
                )
            )
        ), lane.cursor) THEN 'outstanding'
        ELSE 'sent'
    END
FROM message
LEFT JOIN lane ON lane.lane = message.lane
LEFT JOIN aside ON aside.id = message.id;

-- Refuses what no store would take, with the reason.
--
-- SQLite takes any bytes for text. A character is valid UTF-8 if it is the same after it was decoded and encoded
-- again, but for U+FFFE and U+FFFF, which SQLite replaces. Characters are numbered by an array of as many zeros, and
-- only looked at if some are not ASCII.
CREATE TRIGGER outbox_publish INSTEAD OF INSERT ON outbox
BEGIN
    SELECT RAISE(ABORT, 'a topic is text: this one is a blob, or is not valid UTF-8')
    WHERE CASE
        WHEN typeof(NEW.topic) = 'blob' THEN 1
        WHEN NEW.topic GLOB '*[^' || char(1) || '-' || char(127) || ']*' THEN EXISTS (
            SELECT 1
            FROM json_each('[' || substr(replace(hex(zeroblob(length(NEW.topic))), '00', ',0'), 2) || ']') AS place
            WHERE substr(NEW.topic, place.key + 1, 1) NOT IN (
                char(unicode(substr(NEW.topic, place.key + 1, 1))),
                CAST(x'efbfbe' AS TEXT), CAST(x'efbfbf' AS TEXT)
            )
        )
        ELSE 0
    END;
    SELECT RAISE(ABORT, 'a topic has at least one character, no `*` and no control characters')
    WHERE coalesce(NEW.topic, '') = '' OR instr(NEW.topic, '*') > 0
        OR instr(NEW.topic, char(0)) > 0
        OR NEW.topic GLOB
            '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*';
    SELECT RAISE(ABORT, 'the topic is too long; 255 bytes are the most')
    WHERE length(CAST(NEW.topic AS BLOB)) > 255;
    SELECT RAISE(ABORT, 'the key is too long; 1024 bytes are the most')
    WHERE length(CAST(NEW.key AS BLOB)) > 1024;
    SELECT RAISE(ABORT, 'a key is text: this one is a blob, or is not valid UTF-8')
    WHERE CASE
        WHEN typeof(NEW.key) = 'blob' THEN 1
        WHEN NEW.key GLOB '*[^' || char(1) || '-' || char(127) || ']*' THEN EXISTS (
            SELECT 1
            FROM json_each('[' || substr(replace(hex(zeroblob(length(NEW.key))), '00', ',0'), 2) || ']') AS place
            WHERE substr(NEW.key, place.key + 1, 1) NOT IN (
                char(unicode(substr(NEW.key, place.key + 1, 1))),
                CAST(x'efbfbe' AS TEXT), CAST(x'efbfbf' AS TEXT)
            )
        )
        ELSE 0
    END;
    SELECT RAISE(ABORT,
        'a key has at least one character and no control characters; leave it out for no order')
    WHERE NEW.key = '' OR instr(NEW.key, char(0)) > 0
        OR NEW.key GLOB
            '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*';
    SELECT RAISE(ABORT, 'a message has a payload') WHERE NEW.payload IS NULL;
    SELECT RAISE(ABORT, 'the payload is too long; 1048576 bytes are the most')
    WHERE length(CAST(NEW.payload AS BLOB)) > 1048576;
    SELECT RAISE(ABORT, 'headers are an object of strings, such as {"content-type": "text/plain"}')
    WHERE NEW.headers IS NOT NULL AND NOT CASE
        WHEN typeof(NEW.headers) = 'blob' OR instr(NEW.headers, char(0)) > 0 THEN 0
        WHEN json_valid(NEW.headers) THEN json_type(NEW.headers) = 'object'
            AND NOT EXISTS (SELECT 1 FROM json_each(NEW.headers) AS header WHERE header.type <> 'text')
        ELSE 0
    END;
    SELECT RAISE(ABORT, 'the set of headers is too long; 8192 bytes are the most')
    WHERE (
        SELECT sum(length(CAST(header.key AS BLOB)) + length(CAST(header.value AS BLOB)))
        FROM json_each(NEW.headers) AS header
    ) > 8192;
    -- What is left of backslashes without those that stand for themselves begins an escape.
    SELECT RAISE(ABORT, 'a header must not contain NUL')
    WHERE instr(replace(NEW.headers, '\\', ''), '\u0000') > 0;
    SELECT RAISE(ABORT, 'a header is text: this one is not valid UTF-8, or has half of a surrogate pair')
    WHERE CASE
        WHEN instr(NEW.headers, '\u') > 0
            OR NEW.headers GLOB '*[^' || char(1) || '-' || char(127) || ']*' THEN EXISTS (
            SELECT 1
            FROM (
                SELECT header.key || ' ' || header.value AS text FROM json_each(NEW.headers) AS header
            ) AS pair
            CROSS JOIN json_each(
                '[' || substr(replace(hex(zeroblob(length(pair.text))), '00', ',0'), 2) || ']'
            ) AS place
            WHERE substr(pair.text, place.key + 1, 1) NOT IN (
                char(unicode(substr(pair.text, place.key + 1, 1))),
                CAST(x'efbfbe' AS TEXT), CAST(x'efbfbf' AS TEXT)
            )
        )
        ELSE 0
    END;
    SELECT RAISE(ABORT, 'the payload is no JSON; declare another content-type if it is not meant to be')
    FROM (
        SELECT coalesce((
            SELECT trim(lower(substr(header.value, 1, instr(header.value || ';', ';') - 1)))
            FROM json_each(NEW.headers) AS header
            WHERE lower(header.key) = 'content-type'
        ), 'application/json') AS media_type
    )
    WHERE (media_type = 'application/json' OR media_type LIKE '%+json')
        AND NOT json_valid(CAST(NEW.payload AS TEXT));
    SELECT RAISE(ABORT, 'too many messages are outstanding, and there is a limit: publish later')
    FROM outbox_state
    WHERE most_outstanding IS NOT NULL
        AND (SELECT messages FROM outbox_outstanding) >= most_outstanding;
    INSERT INTO message (topic, key, headers, payload, not_before_ms)
    VALUES (NEW.topic, CAST(NEW.key AS TEXT), NEW.headers, CAST(NEW.payload AS BLOB),
        NEW.not_before_ms);
END;
