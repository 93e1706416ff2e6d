-- Stores a snapshot, unless it is there already. Served by the key of snapshot.
INSERT INTO snapshot (hash, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING
