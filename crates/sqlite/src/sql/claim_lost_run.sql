-- Stores a run that was lost too often, as dead. Served by the key of exception.
INSERT INTO exception (batch_id, idx, attempts, state, reason, tries)
VALUES (?1, ?2, ?3, 'dead', ?4, ?3)
