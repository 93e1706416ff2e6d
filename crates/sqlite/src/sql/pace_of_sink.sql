-- The newest ?4 notes about sink ?2 since ?3, about batch ?1 if given. Asked once a second by every load.
-- Served by pace_recent.
SELECT batch_id, worker, sink, body, updated_ms
FROM pace
WHERE sink = ?2 AND updated_ms >= ?3 AND (?1 IS NULL OR batch_id = ?1)
ORDER BY updated_ms DESC
LIMIT ?4
