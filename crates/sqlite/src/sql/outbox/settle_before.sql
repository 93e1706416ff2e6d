-- What was done under other routes, from an array of [lane, what]. Served by the key of done_before.
INSERT INTO done_before (lane, what)
SELECT value ->> 0, value ->> 1
FROM json_each(?1)
