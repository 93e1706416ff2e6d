-- The oldest transaction that has published or may have: younger messages are not read before it is over.
select h.name, extract(epoch from now() - h.since)::double precision as seconds
from (
    select format('%s of %s (pid %s, %s)', coalesce(nullif(s.application_name, ''), 'a transaction'),
            s.usename, s.pid, s.state) as name,
        s.xact_start as since, l.relation
    from pg_locks l
    join pg_stat_activity s on s.pid = l.pid
    where l.locktype = 'relation' and l.mode = 'RowExclusiveLock' and l.granted and l.pid <> pg_backend_pid()
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
        and s.backend_xid is not null
    union all
    select format('prepared transaction %s of %s', p.gid, p.owner), p.prepared, l.relation
    from pg_prepared_xacts p
    join pg_locks x on x.transactionid = p.transaction and x.locktype = 'transactionid' and x.pid is null
    join pg_locks l on l.virtualtransaction = x.virtualtransaction and l.locktype = 'relation'
        and l.mode = 'RowExclusiveLock'
    where p.database = current_database()
) h
where h.since < now() - interval '1 second' and h.relation in (
    'tidegate.message_0'::regclass, 'tidegate.message_1'::regclass,
    'tidegate.message_2'::regclass, 'tidegate.message_3'::regclass
)
order by h.since
limit 1
