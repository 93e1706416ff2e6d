-- Stores a page of results. Served by the key of page.
INSERT INTO page (batch_id, lo, hi, indexes, results) VALUES (?1, ?2, ?3, ?4, ?5)
