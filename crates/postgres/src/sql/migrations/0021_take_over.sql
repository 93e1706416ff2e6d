-- A relay that takes lanes over reads what was set aside there in pages: it gets through however much that is, and
-- renews its lanes meanwhile. A store that was restored or copied is told from the one that it was, and message ids that
-- start anew are noticed whenever that happens. May be applied twice.

-- The transaction that wrote the row. A row that came from a dump was written by another one.
alter table tidegate.epoch add column if not exists written_in xid8 default pg_current_xact_id();
-- The server whose numbers of transactions are noted below.
alter table tidegate.outbox add column if not exists system_identifier bigint;
-- The transaction that settled last: what it had read was written by earlier ones.
alter table tidegate.progress add column if not exists settled_in xid8 default pg_current_xact_id();
alter table tidegate.lane add column if not exists settled_in xid8;

-- The whole number of a recent transaction of this server.
create or replace function tidegate.whole_xid(short xid)
returns bigint
language sql
stable
as $$
    select n.next - 2147483648 + ((short::text::bigint - n.next + 2147483648) & 4294967295)
    from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next) n
$$;

-- When lanes were last settled, and by which transaction; null if that was on another server.
create or replace view tidegate.lane_settled as
select l.lane, greatest(l.settled_at, p.settled_at) as settled_at, greatest(l.settled_in, p.settled_in) as settled_in
from tidegate.lane l
left join lateral (
    select p.settled_at, p.settled_in
    from tidegate.progress p
    where p.relay = l.relay
    order by p.number desc
    limit 1
) p on true;

-- Whether a message that its lane has passed was written after that. The clock alone does not tell: it may be set
-- back. The number of the transaction does, but not for rows that were copied from another server.
create or replace function tidegate.is_written_later(
    written_in xid, published_at timestamptz, settled_in xid8, settled_at timestamptz
)
returns boolean
language sql
stable
as $$
    select published_at > settled_at
        and coalesce(tidegate.whole_xid(written_in) > settled_in::text::bigint, true)
$$;

create or replace function tidegate.let_go(lanes smallint[])
returns void
language sql
as $$
    update tidegate.lane l
    set relay = null, fence = 0, cursor = s.cursor, state = s.state, settled_at = t.settled_at,
        settled_in = t.settled_in
    from tidegate.lanes s
    join tidegate.lane_settled t on t.lane = s.lane
    where l.lane = any (lanes) and s.lane = l.lane
$$;

-- Whether ids that lanes have passed are drawn again, as it happens after tables were copied without their sequences
-- (logical replication, a restored dump): the last id is behind a cursor, or a message right before a cursor was
-- written after the lane was last settled. Looks at few messages, by id.
create or replace function tidegate.has_restarted_ids()
returns boolean
language sql
stable
set enable_seqscan = off
set jit = off
as $$
    select coalesce(pg_sequence_last_value('tidegate.message_id'), 0) < max(l.cursor) or exists (
        select
        from (
            select m.id, m.key, m.published_at, m.xmin as written_in
            from tidegate.message m
            where m.id <= max(l.cursor)
            order by m.id desc
            limit 1000
        ) m
        join tidegate.lanes p on p.lane = tidegate.lane_of(m.key, m.id)
        join tidegate.lane_settled t on t.lane = p.lane
        where m.id <= tidegate.all_read_to(p.cursor, p.state)
            and tidegate.is_written_later(m.written_in, m.published_at, t.settled_in, t.settled_at)
            and not exists (select from tidegate.aside a where a.id = m.id)
    )
    from tidegate.lanes l
$$;

-- Lets nobody lease a lane until message ids are mended.
create or replace function tidegate.note_restarted_ids(restarted boolean)
returns void
language sql
as $$
    update tidegate.epoch e
    set ids_restarted = restarted, written_in = pg_current_xact_id()
    where e.ids_restarted <> restarted
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
    join tidegate.lane_settled t on t.lane = l.lane
    where m.id <= tidegate.all_read_to(l.cursor, l.state)
        and tidegate.is_written_later(m.xmin, m.published_at, t.settled_in, t.settled_at)
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
    perform tidegate.note_restarted_ids(false);
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
            and e.xmin::text::bigint = e.written_in::text::bigint & 4294967295
    );
end
$$;

-- Begins an epoch unless there is one. Afterwards nothing that relays learned before proves anything: every lane has
-- another fence, though its relay may have it again at once. Fences jump ahead of all that the server may have given
-- away before it went back, by a random distance: a copy of the tables elsewhere gives away others.
create or replace function tidegate.begin_epoch()
returns void
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    this_server bigint := (select s.system_identifier from pg_control_system() s);
begin
    perform set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value);
    perform from tidegate.lane l order by l.lane for update;
    perform from tidegate.adopted a order by a.adopted for update;
    if tidegate.current_epoch() is not null then
        return;
    end if;
    perform setval('tidegate.fence', 1000000000 + (random() * 1000000000)::bigint + greatest(
        nextval('tidegate.fence'), (select max(l.fence) from tidegate.lane l),
        (select max(a.fence) from tidegate.adopted a)
    ));
    update tidegate.lane l
    set cursor = s.cursor, state = s.state, settled_at = t.settled_at,
        -- Numbers of another server's transactions say nothing here.
        settled_in = case when o.system_identifier is not distinct from this_server then t.settled_in end,
        fence = case when l.relay is null then 0 else nextval('tidegate.fence') end
    from tidegate.lanes s
    join tidegate.lane_settled t on t.lane = s.lane
    cross join tidegate.outbox o
    where s.lane = l.lane;
    delete from tidegate.progress;
    update tidegate.adopted set fence = nextval('tidegate.fence'), settled = 0, expires_at = now();
    -- This also writes the functions that publish: replication copies rows without firing the trigger that does.
    update tidegate.outbox set system_identifier = this_server, segment = segment;
    delete from tidegate.epoch;
    insert into tidegate.epoch (system_identifier, started_at, ids_restarted, written_in)
    values (this_server, pg_postmaster_start_time(), tidegate.has_restarted_ids(), pg_current_xact_id());
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
    do update
    set cursors = excluded.cursors, states = excluded.states, settled_at = excluded.settled_at,
        settled_in = excluded.settled_in;
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
    ),
    writing as materialized (
        select distinct l.virtualtransaction
        from locks l
        where l.locktype = 'relation' and l.relation in (
            'tidegate.message_0'::regclass, 'tidegate.message_1'::regclass,
            'tidegate.message_2'::regclass, 'tidegate.message_3'::regclass
        )
    ),
    numbered as materialized (
        select w.virtualtransaction, x.transactionid
        from writing w
        join locks x on x.virtualtransaction = w.virtualtransaction and x.locktype = 'transactionid'
    )
    select coalesce(array_agg(distinct tidegate.whole_xid(w.transactionid)::text::xid8), '{}')
    into writers
    from (
        select n.transactionid from numbered n
        union all
        -- While a transaction is being prepared, its locks move one by one: for a moment that on the table can be
        -- seen without that on its number. Then every prepared transaction of this database may be it.
        select p.transaction
        from pg_prepared_xacts p
        where p.database = current_database() and exists (
            select
            from writing w
            where not exists (select from numbered n where n.virtualtransaction = w.virtualtransaction)
        )
    ) w;
end
$$;

-- The first message that holds a key. The order names all columns of aside_key: no other index can serve it. What is
-- found may be of another key: a condition on several columns would not end the scan there before PostgreSQL 18.
create or replace function tidegate.first_of_key(
    of_lane smallint, of_sink text, of_key bigint, out id bigint, out state text
)
language plpgsql
stable
as $$
declare
    next record;
begin
    select a.lane, a.sink, a.key_hash, a.id, a.state into next
    from tidegate.aside a
    where (a.lane, a.sink, a.key_hash) >= (of_lane, of_sink, of_key)
        and a.key_hash is not null and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
    order by a.lane, a.sink, a.key_hash, a.id
    limit 1;
    if (next.lane, next.sink, next.key_hash) = (of_lane, of_sink, of_key) then
        id := next.id;
        state := next.state;
    end if;
end
$$;

-- The next page of what was set aside in some lanes, behind a place. What goes to another sink now waits there in its
-- key's line, or is due if it has no key; what nobody takes any more has no route. The place is null at the end.
--
-- Index: the primary key of aside.
create or replace function tidegate.reroute_page(
    lanes smallint[], regexes text[], sinks text[], most bigint, inout at_lane smallint, inout at_id bigint
)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    left_over bigint := most;
    this smallint;
    page bigint[];
    looked_at bigint;
begin
    for this in select l.lane from unnest(lanes) as l (lane) where l.lane >= at_lane order by l.lane loop
        if this > at_lane then
            at_id := 0;
        end if;
        at_lane := this;
        -- The dead are passed: mostly they are all that there is.
        select array_agg(a.id) filter (where a.is_open), coalesce(max(a.id), at_id), count(*)
        into page, at_id, looked_at
        from (
            select a.id, a.state <> 'dead' or a.on_dead <> 'skip' as is_open
            from tidegate.aside a
            where (a.lane, a.id) > (this, at_id) and a.lane <= this
            order by a.lane, a.id
            limit left_over
        ) a;
        if cardinality(page) > 0 then
            perform from tidegate.lane l where l.lane = this for update;
            update tidegate.aside a
            set sink = coalesce(r.sink, ''),
                state = case
                    when a.state = 'dead' then a.state
                    when r.sink is null then 'unrouted'
                    when a.state = 'later' then a.state
                    when a.key_hash is null then 'retry'
                    else 'behind'
                end,
                due_at = case when a.state in ('dead', 'later') then a.due_at else now() end
            from unnest(page) as p (id)
            cross join lateral (
                select u.topic, u.sink
                from tidegate.aside u
                where u.lane = this and u.id = p.id and (u.state <> 'dead' or u.on_dead <> 'skip')
                limit 1
            ) u
            left join lateral (
                select r.sink
                from unnest(regexes, sinks) with ordinality as r (regex, sink, place)
                where u.topic ~ r.regex
                order by r.place
                limit 1
            ) r on true
            where a.lane = this and a.id = p.id and u.sink <> coalesce(r.sink, '');
        end if;
        left_over := left_over - looked_at;
        if left_over = 0 then
            return;
        end if;
    end loop;
    at_lane := null;
end
$$;

-- The next page of messages that hold keys in some lanes, behind a place: returns their keys, and brings each in order.
-- Of a key, the first that waits is due unless one before it holds the key; all others wait behind it. The last row has
-- the place at which the next page begins, and no lane at the end.
--
-- Index: aside_key.
create or replace function tidegate.keys_page(
    lanes smallint[], most bigint, at_lane smallint, at_sink text, at_key bigint, at_id bigint
)
returns table (lane smallint, sink text, key_hash bigint, id bigint)
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    left_over bigint := most;
    this smallint;
    waits record;
begin
    for this in select l.lane from unnest(lanes) as l (lane) where l.lane >= at_lane order by l.lane loop
        if this > at_lane then
            at_sink := '';
            at_key := -9223372036854775808;
            at_id := 0;
        end if;
        at_lane := this;
        perform from tidegate.lane l where l.lane = this for update;
        for waits in
            select a.sink, a.key_hash, a.id, a.state
            from tidegate.aside a
            where (a.lane, a.sink, a.key_hash, a.id) > (this, at_sink, at_key, at_id) and a.lane <= this
                and a.key_hash is not null and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
            order by a.lane, a.sink, a.key_hash, a.id
            limit left_over
        loop
            if (waits.sink, waits.key_hash) is distinct from (at_sink, at_key) or at_id = 0 then
                lane := this;
                sink := waits.sink;
                key_hash := waits.key_hash;
                return next;
                if waits.state = 'behind' then
                    update tidegate.aside a set state = 'retry', due_at = now() where a.id = waits.id;
                end if;
            elsif waits.state = 'retry' then
                update tidegate.aside a set state = 'behind' where a.id = waits.id;
            end if;
            at_sink := waits.sink;
            at_key := waits.key_hash;
            at_id := waits.id;
            left_over := left_over - 1;
        end loop;
        if left_over = 0 then
            lane := at_lane;
            sink := at_sink;
            key_hash := at_key;
            id := at_id;
            return next;
            return;
        end if;
    end loop;
    lane := null;
    id := 0;
    return next;
end
$$;

-- The next messages in some lanes that were set aside although their lane was not read so far, behind a place.
--
-- Index: the primary key of aside.
create or replace function tidegate.beyond_page(lanes smallint[], most bigint, at_lane smallint, at_id bigint)
returns table (lane smallint, id bigint)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    left_over bigint := most;
    this record;
    found_here bigint;
begin
    for this in
        select l.lane, greatest(tidegate.all_read_to(l.cursor, l.state), case when l.lane = at_lane then at_id end)
            as after
        from tidegate.lane l
        where l.lane = any (lanes) and l.lane >= at_lane
        order by l.lane
    loop
        return query
        select a.lane, a.id
        from tidegate.aside a
        where (a.lane, a.id) > (this.lane, this.after) and a.lane <= this.lane
        order by a.lane, a.id
        limit left_over;
        get diagnostics found_here = row_count;
        left_over := left_over - found_here;
        exit when left_over = 0;
    end loop;
end
$$;

insert into tidegate.migration (version, name)
values (21, '0021_take_over')
on conflict (version) do nothing;
