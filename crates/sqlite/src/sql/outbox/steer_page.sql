-- The first ?2 dead messages behind ?1. Served by aside_dead.
SELECT id FROM aside INDEXED BY aside_dead WHERE state = 'dead' AND id > ?1 ORDER BY id LIMIT ?2
