-- What was done under other routes in the lanes ?1. Served by the key of done_before.
SELECT lane, what
FROM done_before
WHERE lane IN (SELECT value FROM json_each(?1))
