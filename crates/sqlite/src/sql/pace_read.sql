-- The newest ?4 notes about batch ?1 if given, of all sinks (?2 is null), since ?3. For people: a scan, as
-- there is a row per load, not per record.
SELECT batch_id, worker, sink, body, updated_ms
FROM pace
WHERE ?2 IS NULL AND (?1 IS NULL OR batch_id = ?1) AND updated_ms >= ?3
ORDER BY updated_ms DESC, rowid DESC
LIMIT ?4
