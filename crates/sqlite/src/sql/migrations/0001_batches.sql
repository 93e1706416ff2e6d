-- Batches: one row per batch, per leased range, per exception and per page of results; none per run.
-- May be applied twice.

-- The frozen inputs. Large rows: a table with row ids keeps them out of the index.
CREATE TABLE IF NOT EXISTS snapshot (
    hash BLOB NOT NULL PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS batch (
    id             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    workload       TEXT    NOT NULL,
    snapshot       BLOB    NOT NULL,
    -- The bits of an unsigned number.
    seed           INTEGER NOT NULL,
    runs           INTEGER NOT NULL,
    keep           TEXT    NOT NULL,
    max_attempts   INTEGER NOT NULL,
    backoff_ms     INTEGER NOT NULL,
    backoff_cap_ms INTEGER NOT NULL,
    timeout_ms     INTEGER,
    state          TEXT    NOT NULL,
    -- The first index never leased.
    cursor         INTEGER NOT NULL DEFAULT 0 CHECK (cursor BETWEEN 0 AND runs),
    created_ms     INTEGER NOT NULL,
    finished_ms    INTEGER,
    -- Both are written when the batch is closed.
    digest         TEXT,
    aggregates     TEXT
) STRICT;

CREATE INDEX IF NOT EXISTS batch_running ON batch (id) WHERE state = 'running';

-- Leased ranges. `hi` never changes; `lo` moves up with what is settled.
CREATE TABLE IF NOT EXISTS lease (
    batch_id   INTEGER NOT NULL,
    hi         INTEGER NOT NULL,
    lo         INTEGER NOT NULL CHECK (lo < hi),
    fence      INTEGER NOT NULL,
    worker     TEXT    NOT NULL,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (batch_id, hi)
) STRICT, WITHOUT ROWID;

-- Runs that are not simply done. A retry is leased in place: while somebody holds it, `fence` and
-- `worker` say who, and `due_ms` is when that lease expires.
CREATE TABLE IF NOT EXISTS exception (
    batch_id INTEGER NOT NULL,
    idx      INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('retry', 'dead')),
    reason   TEXT    NOT NULL,
    due_ms   INTEGER CHECK ((due_ms IS NULL) = (state = 'dead')),
    fence    INTEGER,
    worker   TEXT,
    PRIMARY KEY (batch_id, idx)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS exception_due ON exception (batch_id, due_ms, idx, attempts)
    WHERE state = 'retry';
CREATE INDEX IF NOT EXISTS exception_held ON exception (batch_id, fence) WHERE fence IS NOT NULL;
CREATE INDEX IF NOT EXISTS exception_dead ON exception (batch_id, idx) WHERE state = 'dead';

-- Results of settled runs: a JSON array, and the index of each unless they are all of [lo, hi).
-- Large rows: a table with row ids keeps them out of the index.
CREATE TABLE IF NOT EXISTS page (
    batch_id INTEGER NOT NULL,
    lo       INTEGER NOT NULL,
    hi       INTEGER NOT NULL,
    indexes  TEXT,
    results  TEXT    NOT NULL,
    PRIMARY KEY (batch_id, lo)
) STRICT;

-- Aggregates by worker: what each has settled of a batch.
CREATE TABLE IF NOT EXISTS part (
    batch_id    INTEGER NOT NULL,
    accumulator INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    body        BLOB    NOT NULL,
    PRIMARY KEY (batch_id, accumulator)
) STRICT;

CREATE TABLE IF NOT EXISTS meta (
    name  TEXT    NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The last fence that was handed out.
INSERT OR IGNORE INTO meta (name, value) VALUES ('fence', 0);

-- One row per stored result. `result` is JSON; a number is an SQL number, exact to the last bit.
CREATE VIEW IF NOT EXISTS results (batch_id, "index", result) AS
SELECT
    page.batch_id,
    CASE
        WHEN page.indexes IS NULL THEN page.lo + entry.key
        ELSE page.indexes ->> entry.key
    END,
    CASE entry.type
        WHEN 'text' THEN json_quote(entry.value)
        WHEN 'true' THEN 'true'
        WHEN 'false' THEN 'false'
        WHEN 'null' THEN 'null'
        ELSE entry.value
    END
FROM page, json_each(page.results) AS entry;
