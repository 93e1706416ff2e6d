-- The messages ?1 that were set aside are done. Served by the key of aside.
DELETE FROM aside WHERE id IN (SELECT value FROM json_each(?1))
