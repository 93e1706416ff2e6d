-- Who has used a segment for over a second: to ask for its lock would be in vain, and claims would wait behind that.
--
-- $1 segment
select coalesce(nullif(a.application_name, ''), a.backend_type, 'a prepared transaction')
    || coalesce(' (process ' || l.pid || ')', '') as name
from pg_locks l
left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'relation' and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.relation = ('tidegate.message_' || $1)::regclass
    and (a.pid is null or a.xact_start < now() - interval '1 s')
order by a.xact_start
limit 1
