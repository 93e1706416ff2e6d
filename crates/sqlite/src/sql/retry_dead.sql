-- Makes a page of the dead runs of a batch due at ?2, with no attempts used: those from index ?3 on and
-- before ?4. Served by exception_dead.
UPDATE exception INDEXED BY exception_dead
SET state = 'retry', attempts = 0, due_ms = ?2, tries = 0, lost = NULL
WHERE batch_id = ?1 AND state = 'dead' AND idx >= ?3 AND idx < ?4
