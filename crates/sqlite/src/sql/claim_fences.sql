-- Hands out ?1 fences and returns the last of them. Served by the key of meta.
UPDATE meta SET value = value + ?1 WHERE name = 'fence' RETURNING value
