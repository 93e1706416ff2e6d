-- Removes one page of dead messages for good. See migrations/0013_steer.sql.
--
-- $1 ids, $2 topic, $3 sink, $4 part of the reason, each or null; $5 after, $6 most; $7 who, $8 why, $9 audit line
select d.messages, d.examined_to, d.audit_line
from tidegate.drop_dead($1, $2, $3, $4, $5, $6, $7, $8, $9) as d
