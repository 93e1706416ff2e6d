-- The last id that was drawn. Reads a table with one row per counter.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0)
