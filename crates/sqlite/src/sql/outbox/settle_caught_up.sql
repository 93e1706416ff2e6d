-- Forgets which sinks lag in the lanes ?1. Served by the key of lag.
DELETE FROM lag WHERE lane IN (SELECT value FROM json_each(?1))
