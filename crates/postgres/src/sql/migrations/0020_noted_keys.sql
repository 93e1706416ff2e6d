-- A key that is to be looked at again is noted once, however many of its messages are retried or dropped. May be
-- applied twice.

-- Until then, nothing of a key is forgotten: a settlement that began before a page was committed may end so late.
alter table tidegate.look_again add column if not exists last_at timestamptz;
alter table tidegate.adopted_look_again add column if not exists last_at timestamptz;

with every as (
    delete from tidegate.look_again n returning n.lane, n.sink, n.key_hash, n.due_at, n.last_at
)
insert into tidegate.look_again (lane, sink, key_hash, due_at, last_at)
select e.lane, e.sink, e.key_hash, min(e.due_at), max(coalesce(e.last_at, e.due_at))
from every e
group by e.lane, e.sink, e.key_hash;

with every as (
    delete from tidegate.adopted_look_again n returning n.adopted, n.sink, n.key_hash, n.due_at, n.last_at
)
insert into tidegate.adopted_look_again (adopted, sink, key_hash, due_at, last_at)
select e.adopted, e.sink, e.key_hash, min(e.due_at), max(coalesce(e.last_at, e.due_at))
from every e
group by e.adopted, e.sink, e.key_hash;

alter table tidegate.look_again alter column last_at set not null;
alter table tidegate.adopted_look_again alter column last_at set not null;
create unique index if not exists look_again_key on tidegate.look_again (lane, sink, key_hash);
create unique index if not exists adopted_look_again_key on tidegate.adopted_look_again (adopted, sink, key_hash);

-- Whoever notes keys, or looks at them, has locked their lanes; the time is that of the lock, not that of the
-- transaction's start.
create or replace function tidegate.note_keys(lanes smallint[], sinks text[], keys bigint[])
returns void
language plpgsql
as $$
begin
    if cardinality(lanes) > 0 then
        -- Soon, and when every settlement that began before has ended by its deadline of 30 seconds. A command
        -- with many pages names a key again and again: its row is rewritten every few seconds, not by each page.
        insert into tidegate.look_again as n (lane, sink, key_hash, due_at, last_at)
        select k.lane, k.sink, k.key_hash, now() + interval '1 s', clock_timestamp() + interval '40 s'
        from unnest(lanes, sinks, keys) as k (lane, sink, key_hash)
        group by k.lane, k.sink, k.key_hash
        on conflict (lane, sink, key_hash) do update
        set due_at = least(n.due_at, now() + interval '5 s'), last_at = greatest(n.last_at, excluded.last_at)
        where n.due_at > now() + interval '5 s' or n.last_at < clock_timestamp() + interval '35 s';
        update tidegate.lane l set disturbed = true where l.lane = any (lanes) and not l.disturbed;
    end if;
end
$$;

-- Returns keys that were noted and are due. Each comes once more, at its last time; then it is forgotten.
create or replace function tidegate.take_noted(lanes smallint[], most bigint)
returns table (lane smallint, sink text, key_hash bigint)
language sql
as $$
    with due as materialized (
        select d.lane, d.sink, d.key_hash, d.last_at
        from unnest(lanes) as l (lane)
        cross join lateral (
            select d.lane, d.sink, d.key_hash, d.last_at
            from tidegate.look_again d
            where d.lane = l.lane and d.due_at <= now()
            order by d.due_at
            limit most
        ) d
        limit most
    ),
    over as (
        delete from tidegate.look_again n
        using due d
        where n.lane = d.lane and n.sink = d.sink and n.key_hash = d.key_hash and d.last_at <= now()
    ),
    later as (
        update tidegate.look_again n
        set due_at = n.last_at
        from due d
        where n.lane = d.lane and n.sink = d.sink and n.key_hash = d.key_hash and d.last_at > now()
    )
    select d.lane, d.sink, d.key_hash from due d
$$;

-- The same for adopted tables, whose lease is locked.
create or replace function tidegate.note_adopted_keys(which text, sinks text[], keys bigint[], soon interval)
returns void
language plpgsql
as $$
begin
    if cardinality(keys) > 0 then
        insert into tidegate.adopted_look_again as n (adopted, sink, key_hash, due_at, last_at)
        select which, k.sink, k.key_hash, now() + soon, clock_timestamp() + interval '40 s'
        from unnest(sinks, keys) as k (sink, key_hash)
        group by k.sink, k.key_hash
        on conflict (adopted, sink, key_hash) do update
        set due_at = least(n.due_at, now() + 5 * soon), last_at = greatest(n.last_at, excluded.last_at)
        where n.due_at > now() + 5 * soon or n.last_at < clock_timestamp() + interval '35 s';
        update tidegate.adopted l set disturbed = true where l.adopted = which and not l.disturbed;
    end if;
end
$$;

create or replace function tidegate.take_noted_adopted(which text, most bigint)
returns table (sink text, key_hash bigint)
language sql
as $$
    with due as materialized (
        select d.sink, d.key_hash, d.last_at
        from tidegate.adopted_look_again d
        where d.adopted = which and d.due_at <= now()
        order by d.adopted, d.due_at
        limit most
    ),
    over as (
        delete from tidegate.adopted_look_again n
        using due d
        where n.adopted = which and n.sink = d.sink and n.key_hash = d.key_hash and d.last_at <= now()
    ),
    later as (
        update tidegate.adopted_look_again n
        set due_at = n.last_at
        from due d
        where n.adopted = which and n.sink = d.sink and n.key_hash = d.key_hash and d.last_at > now()
    )
    select d.sink, d.key_hash from due d
$$;

-- Finds the first message anew for keys that were noted, at most so many. True if more are due. A table with
-- nothing noted any more is not disturbed.
create or replace function tidegate.tend_noted_adopted(which text, most bigint)
returns boolean
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    noted record;
    first record;
begin
    perform from tidegate.adopted l where l.adopted = which for update;
    for noted in select n.sink, n.key_hash from tidegate.take_noted_adopted(which, most) as n loop
        first := tidegate.first_of_adopted_key(which, noted.sink, noted.key_hash);
        if first.state = 'behind' then
            update tidegate.adopted_aside a set state = 'retry', due_at = now()
            where a.adopted = which and a.id = first.id;
        end if;
    end loop;
    update tidegate.adopted l
    set disturbed = false
    where l.adopted = which and l.disturbed
        and not exists (select from tidegate.adopted_look_again n where n.adopted = which);
    return exists (select from tidegate.adopted_look_again n where n.adopted = which and n.due_at <= now());
end
$$;

-- Makes one page of dead messages due again, with all attempts. A message whose key has an earlier one waits
-- behind that. The table's lease is locked first, as relays do.
--
-- Indexes: adopted_aside_dead, adopted_aside_id, adopted_aside_key.
create or replace function tidegate.retry_adopted(
    which text, ids bigint[], of_topic text, of_sink text, of_reason text, after bigint, most bigint,
    by_whom text, because text, line bigint,
    out messages bigint, out examined_to bigint, out audit_line bigint
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
    page bigint[];
    until timestamptz;
    looked_at bigint;
    one bigint;
    dead record;
    first record;
    sinks text[] := '{}';
    keys bigint[] := '{}';
begin
    messages := 0;
    perform from tidegate.adopted l where l.adopted = which for update;
    if ids is null then
        page := array(
            select a.id
            from tidegate.adopted_aside a
            where a.adopted = which and a.state = 'dead' and a.id > after
            order by a.adopted, a.id
            limit most
        );
    else
        page := array(select distinct i.id from unnest(ids) as i (id) where i.id > after order by i.id limit most);
    end if;
    until := clock_timestamp() + interval '100 ms';
    foreach one in array page loop
        looked_at := one;
        select a.sink, a.key_hash, 'retry' as state into dead
        from tidegate.adopted_aside a
        where a.adopted = which and a.id = one and a.state = 'dead'
            and (of_topic is null or a.topic = of_topic) and (of_sink is null or a.sink = of_sink)
            and (of_reason is null or position(of_reason in a.reason) > 0)
        for update;
        continue when not found;
        if dead.key_hash is not null then
            first := tidegate.first_of_adopted_key(which, dead.sink, dead.key_hash);
            if first.id < one then
                dead.state := 'behind';
                sinks := sinks || dead.sink;
                keys := keys || dead.key_hash;
            elsif first.id > one and first.state = 'retry' then
                update tidegate.adopted_aside a set state = 'behind' where a.adopted = which and a.id = first.id;
            end if;
        end if;
        update tidegate.adopted_aside a
        set state = dead.state, attempts = 0, on_dead = 'skip', due_at = now()
        where a.adopted = which and a.id = one;
        messages := messages + 1;
        exit when clock_timestamp() > until;
    end loop;
    if cardinality(page) = most or looked_at < page[cardinality(page)] then
        examined_to := looked_at;
    end if;
    perform tidegate.note_adopted_keys(which, sinks, keys, interval '1 s');
    audit_line := tidegate.note_adopted_audit(which, line, by_whom, 'retry', because, messages);
end
$$;

insert into tidegate.migration (version, name)
values (20, '0020_noted_keys')
on conflict (version) do nothing;
