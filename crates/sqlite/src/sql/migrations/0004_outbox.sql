-- The outbox: messages, how far each lane is, and what was set aside. May be applied twice.
--
-- Other programs write to it with SQLite libraries of their own: nothing here needs one newer than 3.38.

-- One row: what concerns the outbox as a whole.
CREATE TABLE IF NOT EXISTS outbox_state (
    one              INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    -- Makes ids of messages unique among outboxes.
    name             TEXT    NOT NULL,
    -- Null: no limit.
    most_outstanding INTEGER
) STRICT;

INSERT OR IGNORE INTO outbox_state (one, name) VALUES (1, lower(hex(randomblob(5))));

-- Append only. Ids are drawn under the write lock, so that their order is the order of commits.
--
-- SQL has no hash: the lane is a sum over the last characters of the key and, if there are more, over
-- some that are spread over its length and over how often it has each digit; each with a factor of its
-- own, modulo a prime. Keys that differ in any of these are spread evenly.
CREATE TABLE IF NOT EXISTS message (
    id            INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    published_ms  INTEGER NOT NULL
        DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
    not_before_ms INTEGER,
    lane          INTEGER NOT NULL GENERATED ALWAYS AS (
        CASE
            WHEN key IS NULL THEN id % 64
            ELSE (
                length(key) * 860317219
                + ifnull(unicode(substr(key, -1, 1)), 0) * 1047896063
                + ifnull(unicode(substr(key, -2, 1)), 0) * 1809557577
                + ifnull(unicode(substr(key, -3, 1)), 0) * 1705594277
                + ifnull(unicode(substr(key, -4, 1)), 0) * 816951733
                + ifnull(unicode(substr(key, -5, 1)), 0) * 1331343571
                + ifnull(unicode(substr(key, -6, 1)), 0) * 1833779327
                + CASE WHEN length(key) <= 6 THEN 0 ELSE
                    unicode(substr(key, 1 + 0 * length(key) / 8, 1)) * 948638227
                    + unicode(substr(key, 1 + 1 * length(key) / 8, 1)) * 2076934595
                    + unicode(substr(key, 1 + 2 * length(key) / 8, 1)) * 1546754107
                    + unicode(substr(key, 1 + 3 * length(key) / 8, 1)) * 1698603483
                    + unicode(substr(key, 1 + 4 * length(key) / 8, 1)) * 1717194859
                    + unicode(substr(key, 1 + 5 * length(key) / 8, 1)) * 1559831641
                    + unicode(substr(key, 1 + 6 * length(key) / 8, 1)) * 1389710913
                    + unicode(substr(key, 1 + 7 * length(key) / 8, 1)) * 1909259285
                    + length(replace(key, '0', '')) * 1554893135
                    + length(replace(key, '1', '')) * 1880595027
                    + length(replace(key, '2', '')) * 1784241279
                    + length(replace(key, '3', '')) * 677593069
                    + length(replace(key, '4', '')) * 1837386015
                    + length(replace(key, '5', '')) * 565148947
                    + length(replace(key, '6', '')) * 1544539693
                    + length(replace(key, '7', '')) * 1093829411
                    + length(replace(key, '8', '')) * 1719671927
                    + length(replace(key, '9', '')) * 1040092825
                END
            ) % 2147483647 % 64
        END
    ) STORED,
    topic         TEXT    NOT NULL,
    key           TEXT,
    headers       TEXT,
    payload       BLOB    NOT NULL
) STRICT;

-- With the id, which every index ends with.
CREATE INDEX IF NOT EXISTS message_lane ON message (lane);

-- One row per lane: everything up to `cursor` is done or set aside, but for sinks that lag.
CREATE TABLE IF NOT EXISTS lane (
    lane       INTEGER NOT NULL PRIMARY KEY,
    cursor     INTEGER NOT NULL DEFAULT 0,
    fence      INTEGER NOT NULL DEFAULT 0,
    relay      TEXT,
    expires_ms INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT OR IGNORE INTO lane (lane)
WITH RECURSIVE number (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM number WHERE n < 63)
SELECT n FROM number;

-- A sink that is behind its lane, with what was routed to it when it fell behind.
CREATE TABLE IF NOT EXISTS lag (
    lane   INTEGER NOT NULL,
    sink   TEXT    NOT NULL,
    -- JSON.
    topics TEXT    NOT NULL,
    -- The same with patterns as GLOB takes them, for SQL.
    globs  TEXT    NOT NULL,
    cursor INTEGER NOT NULL,
    PRIMARY KEY (lane, sink)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS relay (
    relay      TEXT    NOT NULL PRIMARY KEY,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A message that is not simply done. Its own row stays as long as this one.
CREATE TABLE IF NOT EXISTS aside (
    id       INTEGER NOT NULL PRIMARY KEY,
    lane     INTEGER NOT NULL,
    topic    TEXT    NOT NULL,
    key_hash INTEGER,
    sink     TEXT    NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('retry', 'behind', 'later', 'unrouted', 'dead')),
    attempts INTEGER NOT NULL,
    reason   TEXT    NOT NULL,
    on_dead  TEXT    NOT NULL CHECK (on_dead IN ('skip', 'block', 'park')),
    due_ms   INTEGER NOT NULL,
    -- Whether what follows with its key must wait.
    holds    INTEGER NOT NULL GENERATED ALWAYS AS (
        key_hash IS NOT NULL AND (state IN ('retry', 'behind') OR on_dead <> 'skip')
    ) VIRTUAL
) STRICT;

CREATE INDEX IF NOT EXISTS aside_due ON aside (lane, due_ms) WHERE state IN ('retry', 'later');
CREATE INDEX IF NOT EXISTS aside_key ON aside (lane, sink, key_hash) WHERE holds = 1;
CREATE INDEX IF NOT EXISTS aside_lane ON aside (lane);
CREATE INDEX IF NOT EXISTS aside_state ON aside (state, lane);

-- Who changed what was set aside, and why.
CREATE TABLE IF NOT EXISTS audit (
    id       INTEGER NOT NULL PRIMARY KEY,
    at_ms    INTEGER NOT NULL,
    who      TEXT    NOT NULL,
    what     TEXT    NOT NULL,
    messages INTEGER NOT NULL,
    why      TEXT    NOT NULL
) STRICT;

-- The first message that may still be to be read, or null. Sinks that lag may have no part in it.
CREATE VIEW IF NOT EXISTS outbox_unread (id) AS
SELECT min(first)
FROM (
    SELECT (
        SELECT min(message.id) FROM message
        WHERE message.lane = lane.lane AND message.id > lane.cursor
    ) AS first
    FROM lane
    UNION ALL
    SELECT (
        SELECT min(message.id) FROM message
        WHERE message.lane = lag.lane AND message.id > lag.cursor
    )
    FROM lag
);

-- How many messages are outstanding, or more, never less: all from the first that is still to be read
-- on, and what was set aside and is not dead.
CREATE VIEW IF NOT EXISTS outbox_outstanding (messages) AS
SELECT
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message') + 1 - id, 0)
    + (SELECT count(*) FROM aside WHERE state IN ('retry', 'behind', 'later', 'unrouted'))
FROM outbox_unread;

-- Messages as people read them, and as any program publishes them in its own transaction:
--     INSERT INTO outbox (topic, key, payload, headers) VALUES ('orders', '42', '{"total": 3}', NULL)
CREATE VIEW IF NOT EXISTS outbox
    (id, topic, key, payload, headers, published_ms, not_before_ms, lane, state) AS
SELECT
    message.id,
    message.topic,
    message.key,
    CASE
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
JOIN lane ON lane.lane = message.lane
LEFT JOIN aside ON aside.id = message.id;

-- Refuses what no store would take, with the reason.
CREATE TRIGGER IF NOT EXISTS outbox_publish INSTEAD OF INSERT ON outbox
BEGIN
    SELECT RAISE(ABORT, 'a topic has at least one character, no `*` and no control characters')
    WHERE coalesce(NEW.topic, '') = '' OR instr(NEW.topic, '*') > 0
        OR instr(NEW.topic, char(0)) > 0
        OR NEW.topic GLOB
            '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*';
    SELECT RAISE(ABORT, 'the topic is too long; 255 bytes are the most')
    WHERE length(CAST(NEW.topic AS BLOB)) > 255;
    SELECT RAISE(ABORT, 'the key is too long; 1024 bytes are the most')
    WHERE length(CAST(NEW.key AS BLOB)) > 1024;
    SELECT RAISE(ABORT, 'a key must not contain NUL')
    WHERE instr(CAST(NEW.key AS TEXT), char(0)) > 0;
    SELECT RAISE(ABORT, 'a message has a payload') WHERE NEW.payload IS NULL;
    SELECT RAISE(ABORT, 'the payload is too long; 1048576 bytes are the most')
    WHERE length(CAST(NEW.payload AS BLOB)) > 1048576;
    SELECT RAISE(ABORT, 'headers are an object of strings, such as {"content-type": "text/plain"}')
    WHERE NEW.headers IS NOT NULL AND NOT CASE
        WHEN json_valid(NEW.headers) THEN json_type(NEW.headers) = 'object'
            AND NOT EXISTS (SELECT 1 FROM json_each(NEW.headers) AS header WHERE header.type <> 'text')
        ELSE 0
    END;
    SELECT RAISE(ABORT, 'the set of headers is too long; 8192 bytes are the most')
    WHERE (
        SELECT sum(length(CAST(header.key AS BLOB)) + length(CAST(header.value AS BLOB)))
        FROM json_each(NEW.headers) AS header
    ) > 8192;
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
