-- Forgets a relay that ends. Served by the key of relay.
DELETE FROM relay WHERE relay = ?1
