-- The newest ?3 notes about batch ?1 and sink ?2, each if given. A scan: there is a row per load, not
-- per record.
SELECT batch_id, worker, sink, body, updated_ms
FROM pace
WHERE (?1 IS NULL OR batch_id = ?1) AND (?2 IS NULL OR sink = ?2)
ORDER BY updated_ms DESC, rowid DESC
LIMIT ?3
