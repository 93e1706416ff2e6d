-- What workers know about the pace of the sinks they deliver to: one row per worker and batch.
-- May be applied twice.
CREATE TABLE IF NOT EXISTS pace (
    batch_id   INTEGER NOT NULL,
    worker     TEXT    NOT NULL,
    sink       TEXT    NOT NULL,
    -- JSON.
    body       TEXT    NOT NULL,
    updated_ms INTEGER NOT NULL,
    PRIMARY KEY (batch_id, worker)
) STRICT;

CREATE INDEX IF NOT EXISTS pace_recent ON pace (sink, updated_ms);
