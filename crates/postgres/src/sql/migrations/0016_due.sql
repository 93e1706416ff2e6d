-- A relay's look at what was set aside and is due costs the same however much is due, and for whom. May be applied
-- twice.

-- By sink, so that what is due for one that takes no more is not looked at.
create index if not exists aside_due_sink on tidegate.aside (lane, sink, due_at, id)
    where state in ('retry', 'later');
drop index if exists tidegate.aside_due;

-- Every sink for which a message was ever set aside.
create table if not exists tidegate.aside_sink (sink text primary key);

-- Notes the sinks of messages that were just set aside. In order, so that two of these never wait for each other.
create or replace function tidegate.note_sinks()
returns trigger
language plpgsql
as $$
begin
    insert into tidegate.aside_sink (sink)
    select distinct n.sink
    from placed n
    where not exists (select from tidegate.aside_sink s where s.sink = n.sink)
    order by n.sink
    on conflict do nothing;
    return null;
end
$$;

-- Notes the new sink of a message that goes to another one.
create or replace function tidegate.note_sink()
returns trigger
language plpgsql
as $$
begin
    insert into tidegate.aside_sink (sink)
    select new.sink
    where not exists (select from tidegate.aside_sink s where s.sink = new.sink)
    on conflict do nothing;
    return null;
end
$$;

create or replace trigger note_sinks
after insert on tidegate.aside
referencing new table as placed
for each statement execute function tidegate.note_sinks();

create or replace trigger note_sink
after update of sink on tidegate.aside
for each row when (new.sink is distinct from old.sink)
execute function tidegate.note_sink();

-- After the triggers: whoever sets a message aside from now on notes its sink itself.
insert into tidegate.aside_sink (sink)
select distinct a.sink from tidegate.aside a
on conflict do nothing;

-- What was set aside in some lanes and is due, each with what waits behind it; at most so many heads, so many
-- behind each, and so many bytes. Of a key, only the first that holds it is due; what was delayed may have to
-- wait, too, but that is not known here. One row more, without an id, tells when the next is due. What was due
-- before `since` is not looked for: those that were there are done, and their versions may be many.
--
-- Each sink of each lane has a share of the heads: much that is due for one delays no other.
--
-- Indexes: aside_due_sink, aside_key and its primary key; that by id of each segment for their messages.
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
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    next_due timestamptz;
    due_lanes smallint[];
    due_sinks text[];
begin
    select min(d.due_at), array_agg(l.lane) filter (where d.due_at <= now()),
        array_agg(s.sink) filter (where d.due_at <= now())
    into next_due, due_lanes, due_sinks
    from tidegate.aside_sink s
    cross join unnest(lanes) as l (lane)
    cross join lateral (
        select a.due_at
        from tidegate.aside a
        where (a.lane, a.sink, a.due_at) >= (l.lane, s.sink, since) and (a.lane, a.sink) <= (l.lane, s.sink)
            and a.state in ('retry', 'later') and a.id <> all (under_way)
            and (a.state = 'later' or a.key_hash is null
                or a.id = (
                    select f.id
                    from tidegate.aside f
                    where (f.lane, f.sink, f.key_hash) >= (a.lane, a.sink, a.key_hash)
                        and (f.lane, f.sink, f.key_hash) <= (a.lane, a.sink, a.key_hash)
                        and f.key_hash is not null and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
                    order by f.lane, f.sink, f.key_hash, f.id
                    limit 1
                ))
        order by a.lane, a.sink, a.due_at, a.id
        limit 1
    ) d
    where s.sink <> all (closed);
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
        select h.lane, h.id, h.sink, h.key_hash, h.state
        from unnest(due_lanes, due_sinks) as d (lane, sink)
        cross join lateral (
            select a.lane, a.id, a.sink, a.key_hash, a.state, a.due_at,
                row_number() over (order by a.lane, a.sink, a.due_at, a.id) as place
            from tidegate.aside a
            where (a.lane, a.sink, a.due_at) >= (d.lane, d.sink, since)
                and (a.lane, a.sink, a.due_at) <= (d.lane, d.sink, now())
                and a.state in ('retry', 'later') and a.id <> all (under_way)
                and (a.state = 'later' or a.key_hash is null
                    or a.id = (
                        select f.id
                        from tidegate.aside f
                        where (f.lane, f.sink, f.key_hash) >= (a.lane, a.sink, a.key_hash)
                            and (f.lane, f.sink, f.key_hash) <= (a.lane, a.sink, a.key_hash)
                            and f.key_hash is not null and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
                        order by f.lane, f.sink, f.key_hash, f.id
                        limit 1
                    ))
            order by a.lane, a.sink, a.due_at, a.id
            limit greatest(2 * most / cardinality(due_lanes), 16)
        ) h
        order by h.place, h.due_at, h.id
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
                bool_and(b.sink = h.sink and b.key_hash = h.key_hash and b.state = 'behind'
                    and b.id <> all (under_way)) over (order by b.place) as in_line
            from (
                select b.lane, b.sink, b.key_hash, b.id, b.state,
                    row_number() over (order by b.lane, b.sink, b.key_hash, b.id) as place
                from tidegate.aside b
                where (b.lane, b.sink, b.key_hash, b.id) > (h.lane, h.sink, h.key_hash, h.id)
                    and (b.lane, b.sink, b.key_hash) <= (h.lane, h.sink, h.key_hash)
                    and b.key_hash is not null and (b.state in ('retry', 'behind') or b.on_dead <> 'skip')
                order by b.lane, b.sink, b.key_hash, b.id
                -- All heads together bring at most so many times what was asked for.
                limit least(most_behind, greatest(4 * most / (
                    select nullif(count(c.key_hash), 0) from head c
                ), 1))
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

insert into tidegate.migration (version, name)
values (16, '0016_due')
on conflict (version) do nothing;
