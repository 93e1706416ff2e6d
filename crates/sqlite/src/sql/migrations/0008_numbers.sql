-- Settlements are numbered by relay, without gaps: one that does not follow the last one is refused, so that a
-- relay notices when the file was restored from a backup.
CREATE TABLE IF NOT EXISTS settlement (
    relay  TEXT    NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Relays of earlier builds numbered by lane. Whoever has lanes now begins anew with them.
UPDATE lane SET relay = NULL, fence = 0;
DROP TABLE IF EXISTS settled;
