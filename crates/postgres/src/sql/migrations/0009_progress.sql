-- Progress of relays is appended, one row per settlement, and lanes change only with their leases: while a
-- snapshot is open for long, versions of rows that it may see stay, and what changes often becomes slow to
-- find. Relays of earlier versions do not look there: they end with an error. May be applied twice.

-- How far a relay's lanes are. The last of its rows holds all that the earlier ones did; it is found from the
-- end of the index, before those that were deleted. Names of relays are unique to each of their lives.
create table if not exists tidegate.progress (
    relay text not null,
    number bigint not null,                         -- of the settlement
    cursors bigint[] not null,                      -- by lane; null for those that it did not move
    primary key (relay, number)
) with (
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0
);

-- How far lanes are: as far as they were when they were last leased, and what their relay did since.
create or replace view tidegate.position as
with last as materialized (
    select r.relay, p.cursors
    from (select distinct l.relay from tidegate.lane l where l.relay is not null) r
    cross join lateral (
        select p.cursors
        from tidegate.progress p
        where p.relay = r.relay
        order by p.number desc
        limit 1
    ) p
)
select l.lane, greatest(l.cursor, p.cursors[l.lane + 1]) as cursor
from tidegate.lane l
left join last p on p.relay = l.relay;

-- Notes how far lanes are; their rows are locked. A relay settles one thing after the other. False if a later
-- settlement of it was noted before. A plan that was made while there was little to read must not read all.
create or replace function tidegate.note_progress(
    relay text, number bigint, lanes smallint[], cursors bigint[]
)
returns boolean
language plpgsql
set enable_seqscan = off
as $$
#variable_conflict use_variable
declare
    last record;
begin
    select p.number, p.cursors into last
    from tidegate.progress p
    where p.relay = relay
    order by p.number desc
    limit 1;
    -- It may have been deleted by a later one that this transaction cannot see: that is an error then.
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from tidegate.progress p where p.relay = relay and p.number = last.number for update;
    end if;
    if last.number > number then
        return false;
    end if;
    insert into tidegate.progress (relay, number, cursors)
    select relay, number, array_agg(greatest(last.cursors[n + 1], c.cursor) order by n)
    from generate_series(0, 63) as n
    left join (
        select lane, max(cursor) as cursor from unnest(lanes, cursors) as c (lane, cursor) group by lane
    ) c on c.lane = n
    on conflict on constraint progress_pkey do update set cursors = excluded.cursors;
    delete from tidegate.progress p
    where p.relay = relay and p.number = last.number and p.number < number;
    return true;
end
$$;

-- Settles for lanes of which everything is done: nothing is set aside, and no sink lags. Returns those that it
-- moved. Each part sees what was committed before the lanes were locked.
create or replace function tidegate.advance(
    lanes smallint[], fences bigint[], cursors bigint[], number bigint
)
returns smallint[]
language plpgsql
as $$
#variable_conflict use_variable
declare
    held smallint[];
    moved bigint[];
    relay text;
begin
    select array_agg(l.lane), array_agg(l.cursor), min(l.relay) into held, moved, relay
    from (
        select l.lane, a.cursor, l.relay
        from tidegate.lane l
        join unnest(lanes, fences, cursors) as a (lane, fence, cursor)
            on a.lane = l.lane and a.fence = l.fence
        order by l.lane
        for update of l
    ) l;
    if held is null or not tidegate.note_progress(relay, number, held, moved) then
        return '{}';
    end if;
    update tidegate.lane l set before = null where l.lane = any (held) and l.before is not null;
    delete from tidegate.lag g where g.lane = any (held);
    return held;
end
$$;

-- Forgets the progress of those of some relays that have no lane any more: nobody asks for it.
create or replace function tidegate.forget_progress(relays text[])
returns void
language sql
as $$
    delete from tidegate.progress p
    using (
        select o.relay, o.number
        from unnest(relays) as f (relay)
        cross join lateral (
            select o.relay, o.number
            from tidegate.progress o
            where o.relay = f.relay
            order by o.number desc
            limit 1
        ) o
        where not exists (select from tidegate.lane l where l.relay = f.relay)
    ) o
    where p.relay = o.relay and p.number = o.number
$$;

-- Leases lanes that nobody has. They are locked before it is looked how far they are: nothing that their former
-- relay settled is missed. A relay that holds none goes on with no numbers of another one under its name.
create or replace function tidegate.take(relay text, lease_ms bigint, most bigint, holds_none boolean)
returns table (lane smallint, fence bigint, cursor bigint, before text)
language plpgsql
as $$
#variable_conflict use_column
declare
    free smallint[];
    former text[];
begin
    -- A fence that a crash takes back would be given to two.
    perform set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value);
    if holds_none then
        perform from tidegate.lane l where l.relay = take.relay order by l.lane for update;
        update tidegate.lane l
        set cursor = p.cursor
        from tidegate.position p
        where l.relay = take.relay and p.lane = l.lane and p.cursor > l.cursor;
        delete from tidegate.progress p where p.relay = take.relay;
    end if;
    free := array(
        select l.lane
        from tidegate.lane l
        where l.expires_at <= now()
        order by l.lane
        limit most
        for update skip locked
    );
    former := array(select distinct l.relay from tidegate.lane l where l.lane = any (free));
    return query
    update tidegate.lane l
    set fence = nextval('tidegate.fence'), relay = take.relay, disturbed = false, cursor = p.cursor,
        expires_at = now() + lease_ms * interval '1 ms'
    from tidegate.position p
    where l.lane = any (free) and p.lane = l.lane
    returning l.lane, l.fence, l.cursor, l.before::text;
    perform tidegate.forget_progress(former);
end
$$;

-- Gives lanes back before their time, and forgets a relay that ends. Lanes that were lost are passed over. What a
-- relay sent before and arrives later is late.
create or replace function tidegate.give_back(
    relay text, ends boolean, lanes smallint[], fences bigint[]
)
returns void
language plpgsql
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
    update tidegate.lane l
    set expires_at = now(), relay = null, fence = 0, cursor = p.cursor
    from tidegate.position p
    where l.lane = any (mine) and p.lane = l.lane;
    if ends then
        delete from tidegate.relay r where r.relay = give_back.relay;
        perform tidegate.forget_progress(array[give_back.relay]);
    end if;
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
    select min(c.cursor), array_agg(c.cursor order by c.lane) into read_to, cursors
    from (
        select p.lane, least(p.cursor, min(g.cursor)) as cursor
        from tidegate.position p
        left join tidegate.lag g on g.lane = p.lane
        group by p.lane, p.cursor
    ) c;
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
        when m.id > coalesce((
                select g.cursor from tidegate.lag g
                where g.lane = l.lane and m.topic ~ g.regex
                order by g.cursor limit 1
            ), l.cursor)
            then 'outstanding'
        else 'sent'
    end as state
from tidegate.message m
join tidegate.position l on l.lane = tidegate.lane_of(m.key, m.id)
left join tidegate.aside a on a.lane = l.lane and a.id = m.id;

alter table tidegate.lane drop column if exists settled;

insert into tidegate.migration (version, name)
values (9, '0009_progress')
on conflict (version) do nothing;
