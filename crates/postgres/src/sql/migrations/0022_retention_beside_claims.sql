-- Removing what was sent does not starve beside claims that follow each other without a pause, and no claim waits for it.
-- May be applied twice.
--
-- Every claim used to lock all four segments for as long as it took, and whoever removes one needs it alone. Now the
-- one who removes a segment first makes sure that nothing in it will be wanted again, and says so: it *retires* it.
-- From then on relays leave the segment out, and soon nobody has a lock on it.
--
-- Why nothing is lost. `discard` does, in one transaction and in this order:
--
-- 1. It locks the segment against writers (share row exclusive). Readers do not notice. Whoever has published into it
--    and is still open holds a lock that does not go with this one: there is no such transaction, and there will be none
--    until `discard` ends. Whoever still wants to publish into it waits, and draws its ids afterwards.
-- 2. It looks, with a snapshot that is younger than the lock: every message of the segment was read, and what was set
--    aside of it was copied. Cursors never go back, so that this stays true.
-- 3. It takes an advisory lock, which tells others: this segment is retiring.
-- 4. It tries to lock the segment exclusively, for a few milliseconds at a time.
-- 5. It looks once more, and truncates.
--
-- Others leave a segment out only in a statement that finds both locks of one transaction in pg_locks *after* it took its
-- snapshot. Both locks are held at that moment, so step 2 was before it, and nobody has written into the segment
-- since step 1. If the snapshot is younger than step 1, it shows in the segment what step 2 saw; if it is older, it
-- shows a part of that. All of it is behind the cursors in either case, and what was set aside has a copy: the statement
-- would find nothing in the segment that it needs. Both locks are looked for, because a transaction that ends gives its
-- locks up one after the other.
--
-- A claim names its tables before it can look. So a relay learns from one claim what the next one may leave out, and that
-- one says whether it was right (claim.sql); if not, its answer counts for nothing and it is repeated with all segments.

-- The segments that are about to be truncated: nothing in them is wanted any more. To be asked for by a statement that
-- has its snapshot. Looks at locks only while somebody has leased a segment to remove it.
create or replace function tidegate.retiring()
returns smallint[]
language plpgsql
as $$
begin
    if not exists (select from tidegate.segment s where s.discarding_until > now()) then
        return '{}';
    end if;
    return array(
        -- One look at all locks shows them as they are at one moment.
        with locks as materialized (
            select l.locktype, l.relation, l.classid, l.virtualtransaction
            from pg_locks l
            where l.granted and l.database = (select d.oid from pg_database d where d.datname = current_database())
                and (l.locktype = 'advisory' and l.objid = 22 and l.objsubid = 2
                    or l.locktype = 'relation' and l.mode = 'ShareRowExclusiveLock')
        )
        select s.segment
        from (values
            (0::smallint, 'tidegate.message_0'::regclass), (1::smallint, 'tidegate.message_1'::regclass),
            (2::smallint, 'tidegate.message_2'::regclass), (3::smallint, 'tidegate.message_3'::regclass)
        ) as s (segment, relation)
        where exists (
            select
            from locks a
            join locks t on t.virtualtransaction = a.virtualtransaction
            where a.locktype = 'advisory' and a.classid = s.relation
                and t.locktype = 'relation' and t.relation = s.relation
        )
        order by s.segment
    );
end
$$;

-- The messages with some ids, as far as they are stored in segments that are not about to be truncated.
--
-- Indexes: by id of each segment.
create or replace function tidegate.stored(ids bigint[])
returns table (id bigint, key text, payload bytea, headers jsonb, published_at timestamptz)
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    retiring smallint[] := tidegate.retiring();
begin
    if cardinality(retiring) = 0 then
        return query
        select m.id, m.key, m.payload, m.headers, m.published_at
        from unnest(ids) as i (id)
        cross join lateral (select m.* from tidegate.message m where m.id = i.id limit 1) m;
        return;
    end if;
    return query execute format($text$
        select m.id, m.key, m.payload, m.headers, m.published_at
        from unnest($1) as i (id)
        cross join lateral (
            select m.*
            from (select id, key, payload, headers, published_at from only tidegate.message %s) m
            where m.id = i.id
            limit 1
        ) m
    $text$, (
        select string_agg(format(
            'union all select id, key, payload, headers, published_at from tidegate.message_%s', n
        ), ' ')
        from generate_series(0, 3) n
        where n <> all (retiring)
    )) using ids;
end
$$;

-- What was set aside and is due, as before (0016_due.sql). Messages in a segment that is about to be truncated are not
-- looked up: what was set aside of them has a copy.
--
-- Indexes: aside_due_sink, aside_key and its primary key; that by id of each segment for their messages.
--
-- No condition is the end of a key on several columns: before PostgreSQL 18 it does not end an index scan, which would
-- read on through all that is behind it. What comes next is read, and compared.
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
        where a.lane = l.lane and a.sink = s.sink and a.due_at >= since
            and a.state in ('retry', 'later') and a.id <> all (under_way)
            and (a.state = 'later' or a.key_hash is null
                or a.id = (
                    select f.id
                    from tidegate.aside f
                    where (f.lane, f.sink, f.key_hash) >= (a.lane, a.sink, a.key_hash)
                        and f.key_hash is not null and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
                    order by f.lane, f.sink, f.key_hash, f.id
                    limit 1
                ))
        order by a.due_at, a.id
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
                row_number() over (order by a.due_at, a.id) as place
            from tidegate.aside a
            where a.lane = d.lane and a.sink = d.sink and a.due_at >= since and a.due_at <= now()
                and a.state in ('retry', 'later') and a.id <> all (under_way)
                and (a.state = 'later' or a.key_hash is null
                    or a.id = (
                        select f.id
                        from tidegate.aside f
                        where (f.lane, f.sink, f.key_hash) >= (a.lane, a.sink, a.key_hash)
                                and f.key_hash is not null and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
                        order by f.lane, f.sink, f.key_hash, f.id
                        limit 1
                    ))
            order by a.due_at, a.id
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
                bool_and(b.lane = h.lane and b.sink = h.sink and b.key_hash = h.key_hash
                    and b.state = 'behind' and b.id <> all (under_way)) over (order by b.place) as in_line
            from (
                select b.lane, b.sink, b.key_hash, b.id, b.state,
                    row_number() over (order by b.lane, b.sink, b.key_hash, b.id) as place
                from tidegate.aside b
                where (b.lane, b.sink, b.key_hash, b.id) > (h.lane, h.sink, h.key_hash, h.id)
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
        left join tidegate.stored(array(select l.id from line l)) m on m.id = a.id
    )
    select d.id, d.lane, d.topic, d.key, d.payload, d.headers::text, d.published_at, d.attempts, d.sink, d.state,
        null::double precision
    from found d
    where d.total <= most_bytes or d.k = 1;
end
$$;

-- Whether a segment can be truncated: it is still in its turn and closed, everything in it was read, and nothing would be
-- lost that was set aside. To be asked for with a lock that keeps writers away.
--
-- Indexes: by id of the segment; aside_uncopied.
create or replace function tidegate.is_removable(of_turn bigint)
returns boolean
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    this smallint := of_turn % 4;
    is_lost boolean;
begin
    if not tidegate.is_read(this) or not exists (
        select from tidegate.segment s where s.segment = this and s.turn = of_turn and s.closed_at is not null
    ) then
        return false;
    end if;
    execute format($text$
        select exists (
            select
            from tidegate.aside a
            where a.payload is null and a.id >= (select min(m.id) from tidegate.message_%1$s m)
                and a.id <= (select max(m.id) from tidegate.message_%1$s m)
                and exists (select from tidegate.message_%1$s m where m.id = a.id)
        )
    $text$, this) into is_lost;
    return not is_lost;
end
$$;

-- Truncates a segment if that loses nothing. Returns `done`, `changed` if it may not be truncated, or `busy` if others
-- have used it for all of `wait_ms`. The steps are those at the top. Whoever reads the segment nevertheless waits for the
-- few milliseconds for which its lock is asked for, and for what is done with it, which is short.
--
-- The commit does not wait for a standby: locks are held meanwhile. A standby that is promoted without it has the
-- segment as it was before, with the cursors of that time, and it is removed once more.
create or replace function tidegate.discard(of_turn bigint, wait_ms bigint)
returns text
language plpgsql
set lock_timeout = '10ms'
set enable_seqscan = off
set jit = off
as $$
declare
    this smallint := of_turn % 4;
    segment regclass := 'tidegate.message_' || of_turn % 4;
    until timestamptz := clock_timestamp() + wait_ms * interval '1 ms';
begin
    -- Messages whose ids start anew look as if they had been read. It takes longer than the lock may be held.
    if tidegate.has_restarted_ids() then
        return 'changed';
    end if;
    begin
        execute format('lock table only tidegate.message_%s in share row exclusive mode', this);
    exception
        when lock_not_available then
            return 'busy';
    end;
    if not tidegate.is_removable(of_turn) then
        return 'changed';
    end if;
    if not pg_try_advisory_xact_lock(segment::oid::integer, 22) then
        return 'busy';
    end if;
    loop
        begin
            execute format('lock table only tidegate.message_%s in access exclusive mode', this);
            exit;
        exception
            when lock_not_available then
                if clock_timestamp() >= until then
                    return 'busy';
                end if;
        end;
        perform pg_sleep(0.01);
    end loop;
    if not tidegate.is_removable(of_turn) then
        return 'changed';
    end if;
    perform set_config('synchronous_commit', 'local', true);
    execute format('truncate tidegate.message_%s', this);
    return 'done';
end
$$;

-- The same for whoever knows nothing of a wait.
create or replace function tidegate.discard(of_turn bigint)
returns text
language sql
as $$
    select tidegate.discard(of_turn, 0)
$$;

insert into tidegate.migration (version, name)
values (22, '0022_retention_beside_claims')
on conflict (version) do nothing;
