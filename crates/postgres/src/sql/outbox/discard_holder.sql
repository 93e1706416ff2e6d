-- The transactions that use a segment, those that began first at the beginning. `is_long` tells whether one has been open
-- for over a second; null if this role may not know when transactions of others began.
--
-- $1 segment
select l.virtualtransaction as transaction,
    case when l.pid is null then 'a prepared transaction'
        else coalesce(nullif(a.application_name, ''), a.backend_type, 'a session')
            || coalesce(' of ' || a.usename, '') || ' (process ' || l.pid || ')'
    end as name,
    case when l.pid is null then true else a.xact_start < now() - interval '1 s' end as is_long
from (
    select distinct l.virtualtransaction, l.pid
    from pg_locks l
    where l.locktype = 'relation' and l.granted
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
        and l.relation = ('tidegate.message_' || $1)::regclass
) l
left join pg_stat_activity a on a.pid = l.pid
order by a.xact_start
