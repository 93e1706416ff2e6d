-- A relay has its lanes for as long as it lives, which it says by a row that it appends, and all progress is
-- appended, that of sinks that lag, too: however long a snapshot is open, nothing that relays look up every few
-- seconds has versions behind it that the snapshot may see. Relays of earlier versions end with an error. May be
-- applied twice.

-- Lanes say how far they are, and are nobody's until relays of this version ask for them.
do $$
begin
    if exists (
        select from pg_attribute a
        where a.attrelid = 'tidegate.lane'::regclass and a.attname = 'state' and not a.attisdropped
    ) then
        return;
    end if;
    lock table tidegate.relay, tidegate.lane in access exclusive mode;
    alter table tidegate.lane add column state jsonb;
    update tidegate.lane l
    set cursor = p.cursor, relay = null, fence = 0, state = nullif(
        jsonb_strip_nulls(jsonb_build_object('before', l.before, 'lags', (
            select jsonb_agg(jsonb_build_object(
                'sink', g.sink, 'topics', g.topics, 'regex', g.regex, 'cursor', g.cursor))
            from tidegate.lag g
            where g.lane = l.lane
        ))), '{}')
    from tidegate.position p
    where p.lane = l.lane;
    delete from tidegate.progress;
    delete from tidegate.relay;
    -- The last rows of relays that live are at the end of it, before all those that were deleted.
    alter table tidegate.relay drop constraint relay_pkey, add primary key (expires_at, relay),
        add column said_at timestamptz not null default now();
end
$$;

-- What one deletes from must say what a row is known by, if the database publishes its changes.
do $$
declare
    segment regclass;
begin
    foreach segment in array array[
        'tidegate.message', 'tidegate.message_0', 'tidegate.message_1', 'tidegate.message_2', 'tidegate.message_3'
    ]::regclass[] loop
        execute format('alter table %s replica identity full', segment);
    end loop;
end
$$;

-- Those that a settlement names are looked up one by one, whatever the planner believes about how many there are.
create unique index if not exists aside_id on tidegate.aside (id);

-- By lane: under which fence its `state` changed, and what it is.
alter table tidegate.progress add column if not exists states jsonb;

-- Lanes as they stand: as they were when they were last leased, and what their relay did since. What a cursor
-- does not tell is in `state`: sinks that lag, and what was done before under other routes.
create or replace view tidegate.lanes as
with last as materialized (
    select r.relay, p.cursors, p.states
    from (select distinct l.relay from tidegate.lane l where l.relay is not null) r
    cross join lateral (
        select p.cursors, p.states
        from tidegate.progress p
        where p.relay = r.relay
        order by p.number desc
        limit 1
    ) p
)
select l.lane, l.relay, greatest(l.cursor, p.cursors[l.lane + 1]) as cursor,
    case when p.states #>> array[l.lane::text, 'fence'] = l.fence::text
        then nullif(p.states #> array[l.lane::text, 'state'], 'null')
        else l.state
    end as state
from tidegate.lane l
left join last p on p.relay = l.relay;

-- How far messages on a topic are read in a lane.
create or replace function tidegate.read_to(cursor bigint, state jsonb, topic text)
returns bigint
language sql
immutable
parallel safe
as $$
    select case when state is null then cursor else coalesce((
        select min((g ->> 'cursor')::bigint)
        from jsonb_array_elements(state -> 'lags') as g
        where topic ~ (g ->> 'regex')
    ), cursor) end
$$;

-- How far all messages are read in a lane.
create or replace function tidegate.all_read_to(cursor bigint, state jsonb)
returns bigint
language sql
immutable
parallel safe
as $$
    select case when state is null then cursor else least(cursor, (
        select min((g ->> 'cursor')::bigint) from jsonb_array_elements(state -> 'lags') as g
    )) end
$$;

-- Notes how far lanes are whose fences hold, unless a later settlement of their relay was there before. Returns
-- those that it moved. A relay settles one thing after the other. Each part sees what was committed before the
-- lanes were locked. A plan that was made while there was little to read must not read all.
create or replace function tidegate.advance(
    lanes smallint[], fences bigint[], cursors bigint[], states text[], number bigint
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

-- Whether a relay may have a lane: it is nobody's, or of another one that lives no longer.
create or replace function tidegate.is_free(owner text, relay text)
returns boolean
language sql
stable
as $$
    select owner is null or owner <> relay and not exists (
        select from tidegate.relay r where r.relay = owner and r.expires_at > now()
    )
$$;

-- Frees lanes. They are locked, so that nothing that their relay settled is missed.
create or replace function tidegate.let_go(lanes smallint[])
returns void
language sql
as $$
    update tidegate.lane l
    set relay = null, fence = 0, cursor = s.cursor, state = s.state
    from tidegate.lanes s
    where l.lane = any (lanes) and s.lane = l.lane
$$;

-- Leases free lanes to a relay. Those of which it does not know are free: an answer did not reach it, or it begins
-- anew under its name, and goes on with no numbers of the other one. A copy of this that arrives late finds
-- other fences.
create or replace function tidegate.take(
    relay text, most bigint, unknown_lanes smallint[], unknown_fences bigint[]
)
returns table (lane smallint, fence bigint, cursor bigint, state text)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    unknown smallint[];
    free smallint[];
    former text[];
begin
    -- A fence that a crash takes back would be given to two.
    perform set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value);
    unknown := array(
        select l.lane
        from tidegate.lane l
        join unnest(unknown_lanes, unknown_fences) as u (lane, fence) on u.lane = l.lane and u.fence = l.fence
        order by l.lane
        for update of l
    );
    perform tidegate.let_go(unknown);
    perform tidegate.forget_progress(array[take.relay]);
    -- Of those that ended without a word while no other relay was there.
    delete from tidegate.relay r
    using (
        select e.expires_at, e.relay
        from tidegate.relay e
        where e.expires_at <= now() - interval '1 minute'
        for update skip locked
    ) e
    where r.expires_at = e.expires_at and r.relay = e.relay;
    free := array(
        select l.lane
        from tidegate.lane l
        where tidegate.is_free(l.relay, take.relay)
        order by l.lane
        limit most
        for update skip locked
    );
    -- Whoever said that it lives before they were locked keeps them.
    free := array(
        select l.lane
        from tidegate.lane l
        where l.lane = any (free) and tidegate.is_free(l.relay, take.relay)
    );
    former := array(select distinct l.relay from tidegate.lane l where l.lane = any (free));
    perform tidegate.let_go(free);
    return query
    update tidegate.lane l
    set fence = nextval('tidegate.fence'), relay = take.relay, disturbed = false
    where l.lane = any (free)
    returning l.lane, l.fence, l.cursor, l.state::text;
    perform tidegate.forget_progress(former);
    -- Whoever settles finds a row to lock, under any isolation.
    insert into tidegate.progress (relay, number, cursors)
    select take.relay, 0, array_fill(null::bigint, array[64])
    where cardinality(free) > 0 and not exists (select from tidegate.progress p where p.relay = take.relay)
    on conflict do nothing;
end
$$;

-- Gives lanes back before their time, and forgets a relay that ends. Lanes that were lost are passed over. What a
-- relay sent before and arrives later is late.
create or replace function tidegate.give_back(
    relay text, ends boolean, lanes smallint[], fences bigint[]
)
returns void
language plpgsql
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    mine smallint[];
begin
    mine := array(
        select l.lane
        from tidegate.lane l
        join unnest(lanes, fences) as h (lane, fence) on h.lane = l.lane and h.fence = l.fence
        order by l.lane
        for update of l
    );
    perform tidegate.let_go(mine);
    if ends then
        delete from tidegate.relay r where r.relay = give_back.relay and r.expires_at > now();
        perform tidegate.forget_progress(array[give_back.relay]);
    end if;
end
$$;

-- What was set aside in some lanes and is due, each with what waits behind it; at most so many heads, so many
-- behind each, and so many bytes. Of a key, only the first that holds it is due; what was delayed may have to
-- wait, too, but that is not known here. One row more, without an id, tells when the next is due. What was due
-- before `since` is not looked for: those that were there are done, and their versions may be many.
--
-- Indexes: aside_due, aside_key and its primary key; that by id of each segment for their messages.
create or replace function tidegate.due(
    lanes smallint[], under_way bigint[], closed text[], most bigint, most_behind bigint, most_bytes bigint,
    since timestamptz
)
returns table (
    id bigint, lane smallint, topic text, key text, payload bytea, headers text, published_at timestamptz,
    attempts integer, sink text, state text, due_seconds double precision
)
language plpgsql
stable
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    next_due timestamptz;
begin
    select min(d.due_at) into next_due
    from unnest(lanes) as l (lane)
    cross join lateral (
        select a.due_at
        from tidegate.aside a
        where a.lane = l.lane and a.state in ('retry', 'later') and a.due_at >= since
            and a.id <> all (under_way) and a.sink <> all (closed)
            and (a.state = 'later' or a.key_hash is null or not exists (
                select
                from tidegate.aside f
                where f.lane = a.lane and f.sink = a.sink and f.key_hash = a.key_hash and f.id < a.id
                    and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
            ))
        order by a.due_at
        limit 1
    ) d;
    if next_due is null then
        return;
    end if;
    due_seconds := extract(epoch from next_due - now());
    return next;
    if next_due > now() then
        return;
    end if;
    return query
    with head as materialized (
        select a.lane, a.id, a.sink, a.key_hash, a.state
        from tidegate.aside a
        where a.lane = any (lanes) and a.state in ('retry', 'later')
            and a.due_at >= since and a.due_at <= now()
            and a.id <> all (under_way) and a.sink <> all (closed)
            and (a.state = 'later' or a.key_hash is null or not exists (
                select
                from tidegate.aside f
                where f.lane = a.lane and f.sink = a.sink and f.key_hash = a.key_hash and f.id < a.id
                    and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
            ))
        order by a.due_at, a.id
        limit most
    ),
    line as (
        select h.lane, h.id
        from head h
        union all
        -- What waits behind it, up to the next that holds the key or is under way: no gaps.
        select b.lane, b.id
        from head h
        cross join lateral (
            select b.lane, b.id,
                bool_and(b.state = 'behind' and b.id <> all (under_way)) over (order by b.id) as in_line
            from (
                select b.lane, b.id, b.state
                from tidegate.aside b
                where b.lane = h.lane and b.sink = h.sink and b.key_hash = h.key_hash and b.id > h.id
                    and (b.state in ('retry', 'behind') or b.on_dead <> 'skip')
                order by b.id
                limit most_behind
            ) b
        ) b
        where h.state = 'retry' and b.in_line
    ),
    found as materialized (
        select a.lane, a.id, a.attempts, a.sink, a.topic, a.state,
            case when m.id is null then a.key else m.key end as key,
            coalesce(m.payload, a.payload) as payload,
            coalesce(m.headers, a.headers) as headers,
            coalesce(m.published_at, a.published_at) as published_at,
            sum(octet_length(coalesce(m.payload, a.payload))) over (order by a.id) as total,
            row_number() over (order by a.id) as k
        from line l
        cross join lateral (
            select a.* from tidegate.aside a where a.lane = l.lane and a.id = l.id limit 1
        ) a
        left join lateral (
            select m.id, m.key, m.payload, m.headers, m.published_at
            from tidegate.message m
            where m.id = a.id
            limit 1
        ) m on true
    )
    select d.id, d.lane, d.topic, d.key, d.payload, d.headers::text, d.published_at, d.attempts, d.sink, d.state,
        null::double precision
    from found d
    where d.total <= most_bytes or d.k = 1;
end
$$;

-- Makes the first that waits of every key in some lanes due, unless one before it holds the key; all
-- others wait behind it.
-- Whoever disturbs a lane locks it: what was changed before is seen here, what comes later disturbs it
-- again. Only its relay calms it: a settlement that has begun before may not have seen the change.
--
-- Indexes: the primary key of lane; aside_key, aside_due, aside_id.
create or replace function tidegate.tend(lanes smallint[], calm boolean)
returns void
language plpgsql
as $$
begin
    perform from tidegate.lane l where l.lane = any (lanes) order by l.lane for update;
    update tidegate.lane l set disturbed = false where calm and l.lane = any (lanes) and l.disturbed;
    update tidegate.aside a
    set state = 'retry', due_at = now()
    where a.state = 'behind' and a.id = any (array(
        select f.id
        from (
            select distinct on (f.lane, f.sink, f.key_hash) f.id, f.state
            from tidegate.aside f
            where f.lane = any (lanes) and f.key_hash is not null
                and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
            order by f.lane, f.sink, f.key_hash, f.id
        ) f
        where f.state = 'behind'
    ));
    update tidegate.aside a
    set state = 'behind'
    where a.lane = any (lanes) and a.state = 'retry' and a.key_hash is not null and exists (
        select
        from tidegate.aside f
        where f.lane = a.lane and f.sink = a.sink and f.key_hash = a.key_hash and f.id < a.id
            and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
    );
end
$$;

-- How many messages are outstanding, or more, never less: all ids from the first that is still to be
-- read on, and what was set aside and is not dead. Cursors are looked at first; only if `most` is
-- reached by them, or null, the first message beyond its lane's is looked for. It runs with the rights of its
-- owner: who publishes need not see any of this.
create or replace function tidegate.outstanding(most bigint)
returns bigint
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    last_id bigint;
    read_to bigint;
    stuck bigint;
    cursors bigint[];
begin
    select case when s.is_called then s.last_value else 0 end into last_id
    from tidegate.message_id s;
    select count(*) into stuck
    from (select from tidegate.aside a where a.state <> 'dead' limit most) a;
    select min(l.cursor), array_agg(l.cursor order by l.lane) into read_to, cursors
    from (select l.lane, tidegate.all_read_to(l.cursor, l.state) as cursor from tidegate.lanes l) l;
    if last_id - read_to + stuck < most then
        return last_id - read_to + stuck;
    end if;
    select m.id - 1 into read_to
    from tidegate.message m
    where m.id > read_to and m.id > cursors[tidegate.lane_of(m.key, m.id) + 1]
    order by m.id
    limit 1;
    return greatest(last_id - coalesce(read_to, last_id), 0) + stuck;
end
$$;

-- Messages as people read them.
create or replace view tidegate.messages as
select m.id, m.topic, m.key, m.headers, m.published_at, m.not_before, l.lane,
    case when coalesce(m.headers ->> 'content-type', 'application/json') like '%json%'
            or m.headers ->> 'content-type' like 'text/%'
        then tidegate.as_text(m.payload)
    end as payload_text,
    m.payload,
    case when a.id is not null then a.state
        when m.id > case when l.state is null then l.cursor
                else tidegate.read_to(l.cursor, l.state, m.topic)
            end then 'outstanding'
        else 'sent'
    end as state
from tidegate.message m
join tidegate.lanes l on l.lane = tidegate.lane_of(m.key, m.id)
left join tidegate.aside a on a.lane = l.lane and a.id = m.id;

-- What is not needed any more.
drop view if exists tidegate.position;
drop table if exists tidegate.lag;
drop function if exists tidegate.take(text, bigint, bigint, boolean);
drop function if exists tidegate.advance(smallint[], bigint[], bigint[], bigint);
drop function if exists tidegate.note_progress(text, bigint, smallint[], bigint[]);
alter table tidegate.lane drop column if exists before, drop column if exists expires_at;

insert into tidegate.migration (version, name)
values (10, '0010_leases')
on conflict (version) do nothing;
