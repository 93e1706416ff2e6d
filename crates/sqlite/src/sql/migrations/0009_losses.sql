-- How often work was lost with its worker, so that a run that ends its process is found and given up.

-- `tries` counts the leases that ended neither by settling nor by giving back, the present one included;
-- `lost` is the fence of the last one that was lost. A suspect is part of a range that was lost twice.
CREATE TABLE new_lease (
    batch_id   INTEGER NOT NULL,
    hi         INTEGER NOT NULL,
    lo         INTEGER NOT NULL CHECK (lo < hi),
    fence      INTEGER NOT NULL,
    worker     TEXT    NOT NULL,
    expires_ms INTEGER NOT NULL,
    tries      INTEGER NOT NULL DEFAULT 1,
    lost       INTEGER,
    suspect    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (batch_id, hi)
) STRICT, WITHOUT ROWID;

INSERT INTO new_lease (batch_id, hi, lo, fence, worker, expires_ms)
SELECT batch_id, hi, lo, fence, worker, expires_ms FROM lease;
DROP TABLE lease;
ALTER TABLE new_lease RENAME TO lease;

CREATE INDEX lease_suspect ON lease (worker) WHERE suspect = 1;

CREATE TABLE new_exception (
    batch_id INTEGER NOT NULL,
    idx      INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('retry', 'dead')),
    reason   TEXT    NOT NULL,
    due_ms   INTEGER CHECK ((due_ms IS NULL) = (state = 'dead')),
    fence    INTEGER,
    worker   TEXT,
    tries    INTEGER NOT NULL DEFAULT 0,
    lost     INTEGER,
    PRIMARY KEY (batch_id, idx)
) STRICT, WITHOUT ROWID;

INSERT INTO new_exception (batch_id, idx, attempts, state, reason, due_ms, fence, worker)
SELECT batch_id, idx, attempts, state, reason, due_ms, fence, worker FROM exception;
DROP TABLE exception;
ALTER TABLE new_exception RENAME TO exception;

CREATE INDEX exception_due ON exception (batch_id, due_ms, idx, attempts, tries)
    WHERE state = 'retry';
CREATE INDEX exception_held ON exception (batch_id, fence) WHERE fence IS NOT NULL;
CREATE INDEX exception_dead ON exception (batch_id, idx) WHERE state = 'dead';

-- Retries that are leased one by one, and those that are leased so at present.
CREATE INDEX exception_suspect ON exception (batch_id, idx, due_ms, tries)
    WHERE state = 'retry' AND tries >= 2;
CREATE INDEX exception_alone ON exception (worker, due_ms)
    WHERE state = 'retry' AND fence IS NOT NULL AND tries > 2;
