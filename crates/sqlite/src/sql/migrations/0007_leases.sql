-- A relay has its lanes for as long as it lives: they have no time of their own. Relays of earlier builds
-- end with an error.

-- Views stay as they are, and go on with the new table.
PRAGMA legacy_alter_table = ON;

CREATE TABLE new_lane (
    lane   INTEGER NOT NULL PRIMARY KEY,
    cursor INTEGER NOT NULL DEFAULT 0,
    fence  INTEGER NOT NULL DEFAULT 0,
    relay  TEXT
) STRICT;

INSERT INTO new_lane (lane, cursor, fence, relay) SELECT lane, cursor, fence, relay FROM lane;
DROP TABLE lane;
ALTER TABLE new_lane RENAME TO lane;

PRAGMA legacy_alter_table = OFF;
