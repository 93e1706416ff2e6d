-- A server may go back in time under relays that live on: after a crash, a failover to a standby that was behind, or
-- from a backup. Relays notice it by the epoch, and by settlements without gaps in their numbers. And messages wait only
-- for transactions that publish, not for every transaction of the server. May be applied twice.

-- The present epoch: one row, or none if the server may have gone back since it was written. The table is unlogged:
-- PostgreSQL empties it in crash recovery and on a standby that is promoted. A server that was started again, or that
-- has been filled from a dump, is told by its own properties, which are noted beside.
create unlogged table if not exists tidegate.epoch (
    id uuid not null default gen_random_uuid(),
    system_identifier bigint not null,
    started_at timestamptz not null,
    -- New messages may have ids that were read before the server went back, or before its tables were copied here.
    ids_restarted boolean not null,
    is_only boolean primary key default true check (is_only)
);

-- When a lane was last settled: what was published later was not read by then, whatever its id is.
alter table tidegate.progress add column if not exists settled_at timestamptz not null default now();
alter table tidegate.lane add column if not exists settled_at timestamptz;

-- When lanes were last settled.
create or replace view tidegate.lane_times as
select l.lane, greatest(l.settled_at, p.settled_at) as settled_at
from tidegate.lane l
left join lateral (
    select p.settled_at
    from tidegate.progress p
    where p.relay = l.relay
    order by p.number desc
    limit 1
) p on true;

-- Frees lanes. They are locked, so that nothing that their relay settled is missed.
create or replace function tidegate.let_go(lanes smallint[])
returns void
language sql
as $$
    update tidegate.lane l
    set relay = null, fence = 0, cursor = s.cursor, state = s.state, settled_at = t.settled_at
    from tidegate.lanes s
    join tidegate.lane_times t on t.lane = s.lane
    where l.lane = any (lanes) and s.lane = l.lane
$$;

-- Whether ids that lanes have passed are drawn again, as it happens after tables were copied without their sequences
-- (logical replication, a restored dump): the last id is behind a cursor, or a message right before a cursor was
-- published after the lane was last settled. Looks at few messages, by id.
create or replace function tidegate.has_restarted_ids()
returns boolean
language sql
stable
set enable_seqscan = off
as $$
    select coalesce(pg_sequence_last_value('tidegate.message_id'), 0) < max(l.cursor) or exists (
        select
        from (
            select m.id, m.key, m.published_at
            from tidegate.message m
            where m.id <= max(l.cursor)
            order by m.id desc
            limit 1000
        ) m
        join tidegate.lanes p on p.lane = tidegate.lane_of(m.key, m.id)
        join tidegate.lane_times t on t.lane = p.lane
        where m.id <= tidegate.all_read_to(p.cursor, p.state) and m.published_at > t.settled_at
            and not exists (select from tidegate.aside a where a.id = m.id)
    )
    from tidegate.lanes l
$$;

-- Gives new ids to messages that were published since ids started anew, in their order, and lets relays go on. Returns
-- how many. Publishers wait meanwhile.
create or replace function tidegate.renumber()
returns bigint
language plpgsql
as $$
declare
    since timestamptz;
    last_id bigint;
    renumbered bigint;
begin
    lock table tidegate.message_0, tidegate.message_1, tidegate.message_2, tidegate.message_3
        in share row exclusive mode;
    select greatest(max(l.cursor), (select max(a.id) from tidegate.aside a), (select max(m.id) from tidegate.message m),
            pg_sequence_last_value('tidegate.message_id'), 1)
    into last_id
    from tidegate.lanes l;
    select min(m.published_at) into since
    from tidegate.message m
    join tidegate.lanes l on l.lane = tidegate.lane_of(m.key, m.id)
    join tidegate.lane_times t on t.lane = l.lane
    where m.id <= tidegate.all_read_to(l.cursor, l.state) and m.published_at > t.settled_at
        and not exists (select from tidegate.aside a where a.id = m.id);
    update tidegate.message m
    set id = last_id + n.place
    from (
        select m.tableoid as segment, m.ctid as row, row_number() over (order by m.id) as place
        from tidegate.message m
        where m.published_at >= since
    ) n
    where m.tableoid = n.segment and m.ctid = n.row;
    get diagnostics renumbered = row_count;
    perform setval('tidegate.message_id', last_id + renumbered);
    update tidegate.epoch set ids_restarted = false;
    return renumbered;
end
$$;

-- The name of the present epoch; null if one has to begin. A standby has none: what was read there would be read on
-- after it is promoted. It is refused before the unlogged table is touched, which would be another error there.
create or replace function tidegate.current_epoch()
returns text
language plpgsql
stable
as $$
begin
    if pg_is_in_recovery() then
        raise read_only_sql_transaction using message = 'the server is a standby';
    end if;
    return (
        select e.id::text
        from tidegate.epoch e
        join pg_control_system() s on s.system_identifier = e.system_identifier
        where e.started_at = pg_postmaster_start_time()
    );
end
$$;

-- Begins an epoch unless there is one. Afterwards nothing that relays learned before proves anything: every lane has
-- another fence, though its relay may have it again at once. Fences jump ahead of all that the server may have given
-- away before it went back.
create or replace function tidegate.begin_epoch()
returns void
language plpgsql
set enable_seqscan = off
set jit = off
as $$
begin
    perform set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value);
    perform from tidegate.lane l order by l.lane for update;
    perform from tidegate.adopted a order by a.adopted for update;
    if tidegate.current_epoch() is not null then
        return;
    end if;
    perform setval('tidegate.fence', nextval('tidegate.fence') + 1000000000);
    update tidegate.lane l
    set cursor = s.cursor, state = s.state, settled_at = t.settled_at,
        fence = case when l.relay is null then 0 else nextval('tidegate.fence') end
    from tidegate.lanes s
    join tidegate.lane_times t on t.lane = s.lane
    where s.lane = l.lane;
    delete from tidegate.progress;
    update tidegate.adopted set fence = nextval('tidegate.fence'), settled = 0, expires_at = now();
    delete from tidegate.epoch;
    insert into tidegate.epoch (system_identifier, started_at, ids_restarted)
    select s.system_identifier, pg_postmaster_start_time(), tidegate.has_restarted_ids()
    from pg_control_system() s;
end
$$;

-- Notes how far lanes are whose fences hold. Returns those that it moved: none if a later settlement of their relay
-- is stored. Fails if the store is not where the relay left it: in another epoch, or without the settlement before this
-- one. Each part sees what was committed before the lanes were locked. A plan that was made while there was little to
-- read must not read all.
create or replace function tidegate.advance(
    epoch text, lanes smallint[], fences bigint[], cursors bigint[], states text[], number bigint
)
returns smallint[]
language plpgsql
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_variable
declare
    relay text;
    held smallint[];
    moved bigint[];
    changed jsonb;
    last record;
begin
    -- A relay forgets what it has settled: a crash must not take it back.
    perform set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value);
    select min(l.relay), array_agg(l.lane), array_agg(l.cursor),
        jsonb_object_agg(l.lane, jsonb_build_object('fence', l.fence, 'state', l.state::jsonb))
            filter (where l.state is not null or l.had_state)
    into relay, held, moved, changed
    from (
        select l.relay, l.lane, l.fence, l.state is not null as had_state, a.cursor, a.state
        from tidegate.lane l
        join unnest(lanes, fences, cursors, states) as a (lane, fence, cursor, state)
            on a.lane = l.lane and a.fence = l.fence
        order by l.lane
        for update of l
    ) l;
    if tidegate.current_epoch() is distinct from epoch then
        raise exception using errcode = 'TG410', message = 'another epoch has begun';
    end if;
    if held is null then
        return '{}';
    end if;
    select p.number, p.cursors, p.states into last
    from tidegate.progress p
    where p.relay = relay
    order by p.number desc
    limit 1;
    -- It may have been deleted by a later one that this transaction cannot see: that is an error then.
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from tidegate.progress p where p.relay = relay and p.number = last.number for update;
    end if;
    if last.number > number then
        return '{}';
    end if;
    if coalesce(last.number, 0) < number - 1 then
        raise exception using errcode = 'TG410', message = format(
            'settlement %s does not follow the last one that is stored, %s', number, coalesce(last.number, 0));
    end if;
    insert into tidegate.progress (relay, number, cursors, states)
    select relay, number, array_agg(greatest(last.cursors[n + 1], c.cursor) order by n),
        nullif(coalesce(last.states - held::text[], '{}') || coalesce(changed, '{}'), '{}')
    from generate_series(0, 63) as n
    left join (
        select lane, max(cursor) as cursor from unnest(held, moved) as c (lane, cursor) group by lane
    ) c on c.lane = n
    on conflict on constraint progress_pkey
    do update set cursors = excluded.cursors, states = excluded.states;
    delete from tidegate.progress p
    where p.relay = relay and p.number = last.number and p.number < number;
    return held;
end
$$;

-- The last message id that was drawn; and, if that is beyond `marked`, the transactions that may have drawn ids up to it
-- and are open: those that write to a message table. Everything happens in this order, see horizon.rs.
create or replace function tidegate.look(marked bigint, out last_id bigint, out writers xid8[])
language plpgsql
as $$
begin
    -- Whoever draws an id shows a later value for a moment, unless the page is locked, as here.
    select coalesce(pg_sequence_last_value('tidegate.message_id'), 0) into last_id from tidegate.message_id;
    if last_id <= marked then
        return;
    end if;
    with locks as materialized (
        select l.locktype, l.relation, l.transactionid, l.virtualtransaction, l.mode
        from pg_locks l
        where l.granted and (
            l.locktype = 'transactionid' and l.mode = 'ExclusiveLock'
            or l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
                and l.database = (select d.oid from pg_database d where d.datname = current_database())
        )
    )
    -- Locks tell the lower half of a transaction's number. It is near the next one that will be given.
    select coalesce(array_agg(distinct (
            n.next - 2147483648 + ((x.transactionid::text::bigint - n.next + 2147483648) & 4294967295)
        )::text::xid8), '{}')
    into writers
    from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next) n
    cross join locks x
    where x.locktype = 'transactionid' and x.virtualtransaction in (
        select l.virtualtransaction
        from locks l
        where l.locktype = 'relation' and l.relation in (
            'tidegate.message_0'::regclass, 'tidegate.message_1'::regclass,
            'tidegate.message_2'::regclass, 'tidegate.message_3'::regclass
        )
    );
end
$$;

-- Writes the functions that publish. The segment to which they append and the limit stand in their text:
-- to look them up would cost each message as much as all checks. It runs with the rights of its owner, whose
-- the functions are.
create or replace function tidegate.write_publish()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $write$
declare
    heed_limit text := '';
begin
    if new.most_outstanding is not null then
        heed_limit := format('perform tidegate.refuse(''-'', null, 0, null, %s);', new.most_outstanding);
    end if;
    execute format($text$
        create or replace function tidegate.publish_bytes(
            topic text, key text, payload bytea, headers jsonb default null,
            not_before timestamptz default null
        )
        returns bigint
        language plpgsql
        as $publish$
        #variable_conflict use_variable
        declare
            message_id bigint;
        begin
            %2$s
            -- The transaction has its number, and the table's lock, before the message has its id: relays rely on it
            -- to know which ids are decided (see horizon.rs).
            if octet_length(payload) <= 1048576 and headers is null and pg_current_xact_id() is not null then
                null;
            else
                perform tidegate.refuse(topic, key, octet_length(payload), headers, null);
                perform tidegate.check_json(payload, headers);
                perform pg_current_xact_id();
            end if;
            insert into tidegate.message_%1$s (id, published_at, topic, key, payload, headers, not_before)
            values (nextval('tidegate.message_id'), current_timestamp, topic, key, payload, headers, not_before)
            returning id into message_id;
            return message_id;
        end
        $publish$
    $text$, new.segment, heed_limit);
    execute format($text$
        create or replace function tidegate.publish_many_bytes(
            topics text[], keys text[], payloads bytea[], headers jsonb[] default null,
            not_before timestamptz[] default null
        )
        returns setof bigint
        language plpgsql
        as $publish$
        #variable_conflict use_variable
        declare
            many integer := cardinality(topics);
        begin
            if cardinality(keys) <> many or cardinality(payloads) <> many
                or cardinality(headers) <> many or cardinality(not_before) <> many
            then
                raise exception using errcode = 'TG400', message = 'the arrays have unequal lengths';
            end if;
            %2$s
            perform tidegate.refuse(m.topic, m.key, octet_length(m.payload), m.headers, null)
            from unnest(topics, keys, payloads, headers) as m (topic, key, payload, headers)
            where m.topic is null or m.topic !~ '^[^[:cntrl:]*]+$' or octet_length(m.topic) > 255
                or octet_length(m.key) > 1024 or m.payload is null
                or octet_length(m.payload) > 1048576 or m.headers is not null;
            perform tidegate.check_json(m.payload, m.headers)
            from unnest(payloads, headers) as m (payload, headers)
            where m.headers is not null;
            perform pg_current_xact_id();
            return query
            insert into tidegate.message_%1$s (id, topic, key, payload, headers, not_before)
            select nextval('tidegate.message_id'), u.topic, u.key, u.payload, u.headers, u.not_before
            from (
                select *
                from unnest(topics, keys, payloads, headers, not_before) with ordinality
                    as u (topic, key, payload, headers, not_before, place)
                order by u.place
            ) u
            returning id;
        end
        $publish$
    $text$, new.segment, heed_limit);
    return null;
end
$write$;

update tidegate.outbox set segment = segment;

insert into tidegate.migration (version, name)
values (12, '0012_epoch')
on conflict (version) do nothing;
