-- A relay lives until ?2. Served by the key of relay.
INSERT INTO relay (relay, expires_ms) VALUES (?1, ?2)
ON CONFLICT (relay) DO UPDATE SET expires_ms = excluded.expires_ms
