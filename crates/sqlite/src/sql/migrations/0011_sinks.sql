-- Sinks that take nothing from a relay at the moment: one row per relay and sink. May be applied twice.
CREATE TABLE IF NOT EXISTS sink_trouble (
    relay    TEXT    NOT NULL,
    sink     TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    since_ms INTEGER NOT NULL,
    -- Believed until then: the relay may have been killed.
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (relay, sink)
) STRICT, WITHOUT ROWID;
