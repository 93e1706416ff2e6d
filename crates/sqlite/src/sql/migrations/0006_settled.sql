-- The number of the last settlement of a lane under a fence: copies that arrive late change nothing.
CREATE TABLE IF NOT EXISTS settled (
    lane   INTEGER NOT NULL PRIMARY KEY,
    fence  INTEGER NOT NULL,
    number INTEGER NOT NULL
) STRICT;

-- The heads of keys.
CREATE INDEX IF NOT EXISTS aside_retry ON aside (lane, sink, key_hash)
    WHERE state = 'retry' AND key_hash IS NOT NULL;
