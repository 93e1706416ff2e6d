-- Forgets what was done under other routes in the lanes ?1. Served by the key of done_before.
DELETE FROM done_before WHERE lane IN (SELECT value FROM json_each(?1))
