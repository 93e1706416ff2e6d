-- The oldest snapshot that is open in this database: no version of a row that it may see is removed before. What
-- vacuums sees nothing.
select h.name, extract(epoch from now() - h.since)::double precision as seconds
from (
    select format('%s of %s (pid %s, %s)', coalesce(nullif(s.application_name, ''), 'a session'),
            s.usename, s.pid, s.state) as name,
        s.xact_start as since, age(s.backend_xmin) as age
    from pg_stat_activity s
    where s.backend_xmin is not null and s.pid <> pg_backend_pid() and s.datname = current_database()
        and s.backend_type <> 'autovacuum worker'
    union all
    select format('prepared transaction %s of %s', p.gid, p.owner), p.prepared, age(p.transaction)
    from pg_prepared_xacts p
    where p.database = current_database()
) h
where h.since < now() - interval '1 second'
order by h.age desc, h.since
limit 1
