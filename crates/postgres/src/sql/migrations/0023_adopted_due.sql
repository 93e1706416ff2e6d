-- For adopted tables: what a relay reads does not grow with what was set aside, whatever the planner believes, and a
-- person's decision is durable when it is acknowledged. The reasons are in 0016_due.sql and 0013_steer.sql. May be
-- applied twice.

-- By sink, so that what is due for one that takes no more is not looked at.
create index if not exists adopted_aside_due_sink on tidegate.adopted_aside (adopted, sink, due_at, id)
    where state in ('retry', 'later');
drop index if exists tidegate.adopted_aside_due;

-- What goes to another sink when routes change. A relay that takes a table over looks at one row for each topic.
create index if not exists adopted_aside_topic on tidegate.adopted_aside (adopted, topic, sink)
    where state <> 'dead' or on_dead <> 'skip';

-- The first message that holds a key. The key as a range and the order by it leave one index: any other would have to
-- be sorted. As a condition on several columns, the end of the range would not end the scan (up to PostgreSQL 17).
-- Whoever calls this has switched sorting off.
--
-- Index: adopted_aside_key.
create or replace function tidegate.first_of_adopted_key(
    which text, of_sink text, of_key bigint, out id bigint, out state text
)
language plpgsql
stable
as $$
begin
    select a.id, a.state into first_of_adopted_key.id, first_of_adopted_key.state
    from tidegate.adopted_aside a
    where a.adopted = which and a.sink = of_sink and a.key_hash between of_key and of_key
        and a.key_hash is not null and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
    order by a.key_hash, a.id
    limit 1;
end
$$;

-- The same for many keys at once, leaving some messages out. Keys for which there is none are not returned.
create or replace function tidegate.first_of_adopted_keys(which text, of_sinks text[], of_keys bigint[], but bigint[])
returns table (sink text, key_hash bigint, id bigint, state text)
language plpgsql
stable
rows 100
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query
    select k.sink, k.key_hash, f.id, f.state
    from unnest(of_sinks, of_keys) as k (sink, key_hash)
    cross join lateral (
        select a.id, a.state
        from tidegate.adopted_aside a
        where a.adopted = which and a.sink = k.sink and a.key_hash between k.key_hash and k.key_hash
            and a.key_hash is not null and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
            and a.id not in (select unnest(but))
        order by a.key_hash, a.id
        limit 1
    ) f;
end
$$;

-- What was set aside and is due, each with what waits behind it; at most so many heads, and so many behind each. Of
-- a key, only the first that holds it is due. One row more, without an id, tells when the next is due.
--
-- Each sink has a share of the heads: much that is due for one delays no other. Sinks are found by the first row of
-- each.
--
-- Indexes: adopted_aside_due_sink, adopted_aside_key and adopted_aside_id.
create or replace function tidegate.due_adopted(
    which text, under_way bigint[], closed text[], most bigint, most_behind bigint
)
returns table (
    id bigint, of_head bigint, row_key text, attempts integer, sink text, key_hash bigint, state text,
    due_seconds double precision
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
    this text;
    first_due timestamptz;
    next_due timestamptz;
    due_sinks text[] := '{}';
begin
    this := (
        select a.sink
        from tidegate.adopted_aside a
        where a.adopted = which and a.state in ('retry', 'later')
        order by a.sink, a.due_at, a.id
        limit 1
    );
    while this is not null loop
        if this <> all (closed) then
            first_due := (
                select a.due_at
                from tidegate.adopted_aside a
                where a.adopted = which and a.sink = this
                    and a.state in ('retry', 'later') and a.id not in (select unnest(under_way))
                    and (a.state = 'later' or a.key_hash is null
                        or a.id = (select f.id from tidegate.first_of_adopted_key(which, a.sink, a.key_hash) as f))
                order by a.due_at, a.id
                limit 1
            );
            next_due := least(next_due, first_due);
            if first_due <= now() then
                due_sinks := due_sinks || this;
            end if;
        end if;
        this := (
            select a.sink
            from tidegate.adopted_aside a
            where (a.adopted, a.sink) > (which, this) and a.adopted <= which and a.state in ('retry', 'later')
            order by a.adopted, a.sink, a.due_at, a.id
            limit 1
        );
    end loop;
    if next_due is null then
        return;
    end if;
    due_seconds := extract(epoch from next_due - now());
    return next;
    return query
    with head as materialized (
        select h.id, h.sink, h.key_hash, h.state
        from unnest(due_sinks) as d (sink)
        cross join lateral (
            select a.id, a.sink, a.key_hash, a.state, a.due_at,
                row_number() over (order by a.due_at, a.id) as place
            from tidegate.adopted_aside a
            where a.adopted = which and a.sink = d.sink and a.due_at <= now()
                and a.state in ('retry', 'later') and a.id not in (select unnest(under_way))
                and (a.state = 'later' or a.key_hash is null
                    or a.id = (select f.id from tidegate.first_of_adopted_key(which, a.sink, a.key_hash) as f))
            order by a.due_at, a.id
            limit greatest(2 * most / cardinality(due_sinks), 16)
        ) h
        order by h.place, h.due_at, h.id
        limit most
    ),
    line as (
        select h.id, h.id as of_head
        from head h
        union all
        -- What waits behind it, up to the next that holds the key or is under way: no gaps.
        select b.id, h.id
        from head h
        cross join lateral (
            select b.id,
                bool_and(b.sink = h.sink and b.key_hash = h.key_hash and b.state = 'behind'
                    and b.id not in (select unnest(under_way))) over (order by b.place) as in_line
            from (
                select b.sink, b.key_hash, b.id, b.state,
                    row_number() over (order by b.adopted, b.sink, b.key_hash, b.id) as place
                from tidegate.adopted_aside b
                where (b.adopted, b.sink, b.key_hash, b.id) > (which, h.sink, h.key_hash, h.id)
                    and b.adopted <= which
                    and b.key_hash is not null and (b.state in ('retry', 'behind') or b.on_dead <> 'skip')
                order by b.adopted, b.sink, b.key_hash, b.id
                -- All heads together bring at most so many times what was asked for.
                limit least(most_behind, greatest(4 * most / (
                    select nullif(count(c.key_hash), 0) from head c
                ), 1))
            ) b
        ) b
        where h.state = 'retry' and b.in_line
    )
    select l.id, l.of_head, a.row_key, a.attempts, a.sink, a.key_hash, a.state, null::double precision
    from line l
    cross join lateral (
        select a.* from tidegate.adopted_aside a where a.adopted = which and a.id = l.id limit 1
    ) a;
end
$$;

-- Sends what was set aside to the sinks of present routes, from a place on; at most so many messages or pairs of a
-- topic and a sink. What goes to another sink now waits there in its key's line, or is due if it has no key. What
-- nobody takes any more has no route. It begins without a place.
--
-- Routes are in the order in which they decide. Index: adopted_aside_topic.
create or replace function tidegate.reroute_adopted_page(
    which text, regexes text[], sinks text[], most bigint, inout at_topic text, inout at_sink text, out more boolean
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
    pair record;
    new_sink text;
    moved bigint;
begin
    more := true;
    perform from tidegate.adopted l where l.adopted = which for update;
    while left_over > 0 loop
        if at_topic is null then
            select a.topic, a.sink into pair
            from tidegate.adopted_aside a
            where a.adopted = which and (a.state <> 'dead' or a.on_dead <> 'skip')
            order by a.topic, a.sink
            limit 1;
        else
            select a.topic, a.sink into pair
            from tidegate.adopted_aside a
            where (a.adopted, a.topic, a.sink) > (which, at_topic, at_sink) and a.adopted <= which
                and (a.state <> 'dead' or a.on_dead <> 'skip')
            order by a.adopted, a.topic, a.sink
            limit 1;
        end if;
        if not found then
            more := false;
            return;
        end if;
        select coalesce(min(r.sink), '') into new_sink
        from (
            select r.sink
            from unnest(regexes, sinks) with ordinality as r (regex, sink, place)
            where pair.topic ~ r.regex
            order by r.place
            limit 1
        ) r;
        left_over := left_over - 1;
        if new_sink <> pair.sink then
            update tidegate.adopted_aside a
            set sink = new_sink,
                state = case
                    when a.state = 'dead' then a.state
                    when new_sink = '' then 'unrouted'
                    when a.state = 'later' then a.state
                    when a.key_hash is null then 'retry'
                    else 'behind'
                end,
                due_at = case when a.state in ('dead', 'later') then a.due_at else now() end
            where a.adopted = which and a.id = any (array(
                select m.id
                from (
                    select m.id, m.topic, m.sink
                    from tidegate.adopted_aside m
                    where (m.adopted, m.topic, m.sink) >= (which, pair.topic, pair.sink) and m.adopted <= which
                        and (m.state <> 'dead' or m.on_dead <> 'skip')
                    order by m.adopted, m.topic, m.sink
                    limit left_over
                ) m
                where m.topic = pair.topic and m.sink = pair.sink
            ));
            get diagnostics moved = row_count;
            left_over := left_over - moved;
            -- The next page goes on with what is left of them.
            exit when left_over <= 0;
        end if;
        at_topic := pair.topic;
        at_sink := pair.sink;
    end loop;
end
$$;

-- As tend_adopted_page, and returns the keys that it came across: those that wait for what was set aside.
--
-- Index: adopted_aside_key.
create or replace function tidegate.take_adopted_page(
    which text, most bigint, inout at_sink text, inout at_key bigint, inout at_id bigint,
    out sinks text[], out keys bigint[]
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
    waits record;
begin
    sinks := '{}';
    keys := '{}';
    perform from tidegate.adopted l where l.adopted = which for update;
    for waits in
        select a.sink, a.key_hash, a.id, a.state
        from tidegate.adopted_aside a
        where (a.adopted, a.sink, a.key_hash, a.id) > (which, at_sink, at_key, at_id) and a.adopted <= which
            and a.key_hash is not null and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
        order by a.adopted, a.sink, a.key_hash, a.id
        limit most
    loop
        if (waits.sink, waits.key_hash) is distinct from (at_sink, at_key) or at_id = 0 then
            sinks := sinks || waits.sink;
            keys := keys || waits.key_hash;
            if waits.state = 'behind' then
                update tidegate.adopted_aside a set state = 'retry', due_at = now()
                where a.adopted = which and a.id = waits.id;
            end if;
        elsif waits.state = 'retry' then
            update tidegate.adopted_aside a set state = 'behind' where a.adopted = which and a.id = waits.id;
        end if;
        at_sink := waits.sink;
        at_key := waits.key_hash;
        at_id := waits.id;
        left_over := left_over - 1;
    end loop;
    if left_over > 0 then
        at_id := null;
    end if;
end
$$;

-- Finds the first message anew for keys that were noted, at most so many. True if more are due. Each comes once more,
-- at its last time; then it is forgotten. A table with nothing noted any more is not disturbed.
--
-- Indexes: adopted_look_again_due, adopted_look_again_key, adopted_aside_key, adopted_aside_id.
create or replace function tidegate.tend_noted_adopted(which text, most bigint)
returns boolean
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    noted record;
    first record;
begin
    perform from tidegate.adopted l where l.adopted = which for update;
    for noted in
        select n.sink, n.key_hash, n.last_at
        from tidegate.adopted_look_again n
        where n.adopted = which and n.due_at <= now()
        order by n.adopted, n.due_at
        limit most
    loop
        if noted.last_at <= now() then
            delete from tidegate.adopted_look_again n
            where n.adopted = which and n.sink = noted.sink and n.key_hash = noted.key_hash;
        else
            update tidegate.adopted_look_again n set due_at = n.last_at
            where n.adopted = which and n.sink = noted.sink and n.key_hash = noted.key_hash;
        end if;
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

drop function if exists tidegate.take_noted_adopted(text, bigint);

-- The ids of dead messages, after one and at most so many.
--
-- Index: adopted_aside_dead.
create or replace function tidegate.dead_of_adopted(which text, after bigint, most bigint)
returns setof bigint
language plpgsql
stable
rows 1000
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
    return query
    select a.id
    from tidegate.adopted_aside a
    where a.adopted = which and a.state = 'dead' and a.id > after
    order by a.adopted, a.id
    limit most;
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
    -- Whoever decided it is told that it is done: a crash must not take it back.
    perform set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value);
    messages := 0;
    perform from tidegate.adopted l where l.adopted = which for update;
    if ids is null then
        page := array(select d.id from tidegate.dead_of_adopted(which, after, most) as d (id));
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
values (23, '0023_adopted_due')
on conflict (version) do nothing;
