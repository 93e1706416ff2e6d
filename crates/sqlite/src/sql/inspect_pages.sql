-- The first ?4 pages of a batch that begin at index ?2 or later and end beyond ?3. Served by the key
-- of page.
SELECT lo, hi, indexes, results
FROM page
WHERE batch_id = ?1 AND lo >= ?2 AND hi > ?3
ORDER BY lo
LIMIT ?4
