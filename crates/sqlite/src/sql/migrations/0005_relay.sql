-- What was done in a lane under other routes, if a sink lagged when they changed: JSON.
CREATE TABLE IF NOT EXISTS done_before (
    lane INTEGER NOT NULL PRIMARY KEY,
    what TEXT    NOT NULL
) STRICT;
