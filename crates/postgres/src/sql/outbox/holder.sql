-- The oldest transaction that may still publish: younger messages are not read before it is over.
select h.name, extract(epoch from now() - h.since)::double precision as seconds
from (
    select format('%s of %s (pid %s, %s)', coalesce(nullif(s.application_name, ''), 'a transaction'),
            s.usename, s.pid, s.state) as name,
        s.xact_start as since
    from pg_stat_activity s
    where s.backend_xid is not null and s.pid <> pg_backend_pid()
    union all
    select format('prepared transaction %s of %s', p.gid, p.owner), p.prepared
    from pg_prepared_xacts p
) h
where h.since < now() - interval '1 second'
order by h.since
limit 1
