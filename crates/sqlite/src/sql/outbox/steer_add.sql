-- Adds ?2 messages to the audit line ?1. Served by the key of audit.
UPDATE audit SET messages = messages + ?2 WHERE id = ?1
