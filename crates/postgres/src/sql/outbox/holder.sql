-- The oldest transaction that may still publish: younger messages are not read before it is over.
select format('%s of %s (pid %s, %s)', coalesce(nullif(s.application_name, ''), 'a transaction'),
        s.usename, s.pid, s.state) as name,
    extract(epoch from now() - s.xact_start)::double precision as seconds
from pg_stat_activity s
where s.backend_xid is not null and s.pid <> pg_backend_pid()
    and s.xact_start < now() - interval '1 second'
order by s.xact_start
limit 1
