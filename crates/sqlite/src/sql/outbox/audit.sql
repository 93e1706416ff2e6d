-- The last ?1 audit lines, newest first. Served by the key of audit.
SELECT at_ms, who, what, messages, why FROM audit WHERE id > 0 ORDER BY id DESC LIMIT ?1
