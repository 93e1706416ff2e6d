-- Dead messages are retried and dropped in pages, and looking for what is due costs the same however much is due.

-- The dead, in the order of their ids.
CREATE INDEX IF NOT EXISTS aside_dead ON aside (id) WHERE state = 'dead';

-- By sink, so that what is due for one that takes no more is not looked at.
CREATE INDEX IF NOT EXISTS aside_due_sink ON aside (lane, sink, due_ms, id) WHERE state IN ('retry', 'later');
DROP INDEX IF EXISTS aside_due;
