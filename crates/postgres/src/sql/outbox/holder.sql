-- The oldest transaction that has published or may have: younger messages are not read before it is over. Only those
-- that have been open for over a second; and those of which this role may not know that: `seconds` is null then.
select h.name, h.transaction, extract(epoch from now() - h.since)::double precision as seconds
from (
    select format('%s of %s (pid %s, %s)', coalesce(nullif(s.application_name, ''), 'a transaction'),
            s.usename, l.pid, coalesce(s.state, format(
                'since when is hidden: `grant pg_read_all_stats to %I` shows it', current_user
            ))) as name,
        l.virtualtransaction as transaction, s.xact_start as since, age(x.transactionid) as age, l.relation
    from pg_locks l
    join pg_locks x on x.virtualtransaction = l.virtualtransaction and x.locktype = 'transactionid'
        and x.mode = 'ExclusiveLock' and x.granted
    left join pg_stat_activity s on s.pid = l.pid
    where l.locktype = 'relation' and l.mode = 'RowExclusiveLock' and l.granted and l.pid <> pg_backend_pid()
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
    union all
    select format('prepared transaction %s of %s', p.gid, p.owner), l.virtualtransaction, p.prepared,
        age(p.transaction), l.relation
    from pg_prepared_xacts p
    join pg_locks x on x.transactionid = p.transaction and x.locktype = 'transactionid' and x.pid is null
    join pg_locks l on l.virtualtransaction = x.virtualtransaction and l.locktype = 'relation'
        and l.mode = 'RowExclusiveLock'
    where p.database = current_database()
) h
where (h.since is null or h.since < now() - interval '1 second') and h.relation in (
    'tidegate.message_0'::regclass, 'tidegate.message_1'::regclass,
    'tidegate.message_2'::regclass, 'tidegate.message_3'::regclass
)
order by h.age desc
limit 1
