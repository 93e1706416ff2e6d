-- The first ?3 pages of a batch from index ?2 on. Served by the key of page.
SELECT lo, hi, indexes, results
FROM page
WHERE batch_id = ?1 AND lo >= ?2
ORDER BY lo
LIMIT ?3
