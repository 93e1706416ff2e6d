-- Makes one page of dead messages due again. See migrations/0017_adopted.sql.
--
-- $1 adopted; $2 ids, $3 topic, $4 sink, $5 part of the reason, each or null; $6 after, $7 most; $8 who, $9 why,
-- $10 audit line
select r.messages, r.examined_to, r.audit_line
from tidegate.retry_adopted($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) as r
