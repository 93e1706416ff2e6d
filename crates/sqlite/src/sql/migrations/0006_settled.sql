-- The number of the last settlement of a lane under a fence: copies that arrive late change nothing.
CREATE TABLE IF NOT EXISTS settled (
    lane   INTEGER NOT NULL PRIMARY KEY,
    fence  INTEGER NOT NULL,
    number INTEGER NOT NULL
) STRICT;
