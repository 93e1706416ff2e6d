-- The first ?1 groups of the dead by topic, sink and reason, most first. Served by aside_state.
SELECT topic, sink, reason, count(*) AS messages, min(id) AS first, max(id) AS last
FROM aside
WHERE state = 'dead'
GROUP BY topic, sink, reason
ORDER BY count(*) DESC, min(id)
LIMIT ?1
