-- Forgets relays that are gone at ?1. Reads one row per relay.
DELETE FROM relay WHERE expires_ms <= ?1
