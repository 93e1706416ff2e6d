-- Notes at ?1 who changed what, how many, and why. Served by the key of audit.
INSERT INTO audit (at_ms, who, what, messages, why) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id
