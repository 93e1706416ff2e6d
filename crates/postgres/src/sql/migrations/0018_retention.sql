-- Removing what was sent never makes a claim wait: everything that takes time happens before the one short lock, and
-- nothing reads a segment as a whole while it is held. May be applied twice.

-- Which turn a segment is in: it grows with each turn and names what is in it now. `segment` is its rest by four.
alter table tidegate.segment add column if not exists turn bigint;
-- Until when one process alone tries to truncate it.
alter table tidegate.segment add column if not exists discarding_until timestamptz not null default '-infinity';

update tidegate.segment s
set turn = 4 + o.segment - (o.segment - s.segment + 4) % 4
from tidegate.outbox o
where s.turn is null;

-- What would be lost with its message's segment.
create index if not exists aside_uncopied on tidegate.aside (id) where payload is null;

-- Goes on with the next segment, if it is empty and the present one has messages and was opened long enough ago. Two
-- of four segments wait for their time while one is written, so messages are kept for at most one and a half times
-- `age_ms`. One process at a time.
create or replace function tidegate.rotate(age_ms bigint)
returns void
language plpgsql
as $$
declare
    old smallint;
    new smallint;
begin
    select o.segment, (o.segment + 1) % 4 into old, new from tidegate.outbox o for update skip locked;
    if not found or tidegate.is_empty(old) or not tidegate.is_empty(new) or not exists (
        select
        from tidegate.segment s
        where s.segment = old and s.opened_at <= now() - age_ms / 2 * interval '1 ms'
    ) then
        return;
    end if;
    update tidegate.outbox set segment = new;
    update tidegate.segment s set closed_at = now() where s.segment = old;
    update tidegate.segment s
    set opened_at = now(), closed_at = null, turn = o.turn + 1, discarding_until = '-infinity'
    from tidegate.segment o
    where s.segment = new and o.segment = old;
end
$$;

-- Whether every message of a segment was read. Looks at the messages behind the cursor that is furthest behind:
-- relays move all cursors on, so that there are few. True only if all of these were read by their lanes.
--
-- Index: by id of the segment.
create or replace function tidegate.is_read(segment smallint)
returns boolean
language plpgsql
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
    most constant bigint := 2000;
    read_to bigint;
    cursors bigint[];
    looked_at bigint;
    unread boolean;
begin
    select min(l.read_to), array_agg(l.read_to order by l.lane) into read_to, cursors
    from (select l.lane, tidegate.all_read_to(l.cursor, l.state) as read_to from tidegate.lanes l) l;
    execute format($text$
        select count(*), bool_or(m.id > $1[m.lane + 1])
        from (
            select m.id, tidegate.lane_of(m.key, m.id) as lane
            from tidegate.message_%s m
            where m.id > $2
            order by m.id
            limit $3
        ) m
    $text$, segment) into looked_at, unread using cursors, read_to, most;
    return looked_at < most and not coalesce(unread, false);
end
$$;

-- How many messages of a segment were sent; null if it is empty, or some are still to be read. Beyond a million, ids
-- are counted instead of messages: those that were drawn in vain are among them.
--
-- Indexes: by id of the segment; aside_id.
create or replace function tidegate.count_sent(segment smallint)
returns bigint
language plpgsql
set jit = off
as $$
declare
    most constant bigint := 1000000;
    lo bigint;
    hi bigint;
    sent bigint;
begin
    if not tidegate.is_read(segment) then
        return null;
    end if;
    execute format('select min(m.id), max(m.id) from tidegate.message_%s m', segment) into lo, hi;
    if hi - lo >= most then
        return hi - lo + 1 - (select count(*) from tidegate.aside a where a.id between lo and hi);
    end if;
    execute format($text$
        select count(*)
        from tidegate.message_%s m
        where not exists (select from tidegate.aside a where a.id = m.id)
    $text$, segment) into sent;
    return case when hi is not null then sent end;
end
$$;

-- Copies what was set aside out of a segment that is about to be truncated, one page from a message on. Returns
-- the last that was looked at, null at the end. It waits for nobody: what a relay is just changing is left for
-- another time.
--
-- Indexes: aside_uncopied, aside_id; by id of the segment.
create or replace function tidegate.keep_aside(segment smallint, after bigint, most bigint)
returns bigint
language plpgsql
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
    page bigint[];
    lo bigint;
    hi bigint;
begin
    execute format('select min(m.id), max(m.id) from tidegate.message_%s m', segment) into lo, hi;
    page := array(
        select a.id
        from tidegate.aside a
        where a.payload is null and a.id > greatest(after, lo - 1) and a.id <= hi
        order by a.id
        limit most
    );
    page := array(
        select a.id from tidegate.aside a where a.id = any (page) order by a.id for update skip locked
    ) || page[cardinality(page)];
    execute format($text$
        update tidegate.aside a
        set key = m.key, payload = m.payload, headers = m.headers, published_at = m.published_at
        from tidegate.message_%s m
        where a.id = any ($1) and m.id = a.id
    $text$, segment) using page[:cardinality(page) - 1];
    return page[cardinality(page)];
end
$$;

-- Compiling its plan would take longer than all that it reads.
alter function tidegate.has_restarted_ids() set jit = off;

-- Truncates a segment if it is still in its turn, everything in it was read, and nothing would be lost that was set
-- aside. Returns `done`, `changed`, or `busy` if others use it. Claims wait behind the lock that it asks for: so it asks
-- for a few milliseconds only, and all that it does with it is short. Whoever is publishing into the segment holds a
-- lock until the end of the transaction: with this lock, everything that will ever be in it is to be seen.
create or replace function tidegate.discard(of_turn bigint)
returns text
language plpgsql
set lock_timeout = '10ms'
set enable_seqscan = off
set jit = off
as $$
declare
    this smallint := of_turn % 4;
    is_lost boolean;
begin
    -- Messages whose ids start anew look as if they had been read. It takes longer than the lock may be held.
    if tidegate.has_restarted_ids() then
        return 'changed';
    end if;
    begin
        execute format('lock table only tidegate.message_%s in access exclusive mode', this);
    exception
        when lock_not_available then
            return 'busy';
    end;
    if not tidegate.is_read(this) or not exists (
        select from tidegate.segment s where s.segment = this and s.turn = of_turn and s.closed_at is not null
    ) then
        return 'changed';
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
    if is_lost then
        return 'changed';
    end if;
    execute format('truncate tidegate.message_%s', this);
    return 'done';
end
$$;

insert into tidegate.migration (version, name)
values (18, '0018_retention')
on conflict (version) do nothing;
