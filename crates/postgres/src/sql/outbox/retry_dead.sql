-- Makes one page of dead messages due again. See migrations/0013_steer.sql.
--
-- $1 ids, $2 topic, $3 sink, $4 part of the reason, each or null; $5 after, $6 most; $7 who, $8 why, $9 audit line
with durable as materialized (
    -- A page that is shown as done must not come back after a crash.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
)
select r.messages, r.examined_to, r.audit_line
from durable
cross join tidegate.retry_dead($1, $2, $3, $4, $5, $6, $7, $8, $9) as r
