-- The outbox: messages, how far each lane is, and what was set aside. May be applied twice.

-- One row: what concerns the outbox as a whole.
create table if not exists tidegate.outbox (
    one boolean primary key default true check (one),
    name text not null,                             -- makes ids of messages unique among outboxes
    segment smallint not null default 0,            -- where messages are appended
    most_outstanding bigint                         -- null: no limit
);

-- What follows is locked in the order in which a change of this row locks it.
lock table tidegate.outbox in share row exclusive mode;

insert into tidegate.outbox (name)
values (substr(md5(gen_random_uuid()::text), 1, 10))
on conflict (one) do nothing;

-- Order of publication. A cached value would be out of order.
create sequence if not exists tidegate.message_id as bigint minvalue 1 cache 1;

-- Append only. There is one index, so that publishing costs what an insert with a primary key does.
--
-- The transaction gets its own number before the message gets its id: readers rely on it to know
-- which ids are decided (see horizon.rs).
create table if not exists tidegate.message (
    id bigint not null default (
        case when pg_current_xact_id() is not null then nextval('tidegate.message_id') end
    ),
    published_at timestamptz not null default now(),
    not_before timestamptz,
    lane smallint not null,
    segment smallint not null,
    topic text not null,
    key text,
    payload bytea not null,
    headers jsonb
) partition by list (segment);

-- Four segments in turn: one is written, the others wait to be truncated as a whole.
create table if not exists tidegate.message_0 partition of tidegate.message for values in (0);
create table if not exists tidegate.message_1 partition of tidegate.message for values in (1);
create table if not exists tidegate.message_2 partition of tidegate.message for values in (2);
create table if not exists tidegate.message_3 partition of tidegate.message for values in (3);

do $$
begin
    -- A later migration has tables of another kind.
    if (select c.relkind from pg_class c where c.oid = 'tidegate.message'::regclass) = 'p' then
        create index if not exists message_lane on tidegate.message (lane, id);
    end if;
end
$$;

-- When each segment was last opened and closed; only a closed one can be truncated.
create table if not exists tidegate.segment (
    segment smallint primary key,
    opened_at timestamptz,
    closed_at timestamptz
);

insert into tidegate.segment (segment, opened_at)
values (0, now()), (1, null), (2, null), (3, null)
on conflict (segment) do nothing;

-- One row per lane: everything up to `cursor` is done or set aside, but for sinks that lag.
create table if not exists tidegate.lane (
    lane smallint primary key,
    cursor bigint not null default 0,
    fence bigint not null default 0,
    relay text,
    expires_at timestamptz not null default '-infinity',
    disturbed boolean not null default false        -- somebody changed what was set aside
) with (
    fillfactor = 10,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0
);

insert into tidegate.lane (lane)
select n from generate_series(0, 63) as n
on conflict (lane) do nothing;

-- A sink that is behind its lane, with what was routed to it when it fell behind.
create table if not exists tidegate.lag (
    lane smallint not null,
    sink text not null,
    topics jsonb not null,
    regex text not null,                            -- the same, for SQL
    cursor bigint not null,
    primary key (lane, sink)
) with (fillfactor = 50);

create table if not exists tidegate.relay (
    relay text primary key,
    expires_at timestamptz not null
) with (fillfactor = 50);

-- A message that is not simply done. The last columns are filled when its own row is removed.
create table if not exists tidegate.aside (
    lane smallint not null,
    id bigint not null,
    topic text not null,
    key_hash bigint,
    sink text not null,
    state text not null check (state in ('retry', 'behind', 'later', 'unrouted', 'dead')),
    attempts integer not null,
    reason text not null,
    on_dead text not null check (on_dead in ('skip', 'block', 'park')),
    due_at timestamptz not null,
    key text,
    payload bytea,
    headers jsonb,
    published_at timestamptz,
    primary key (lane, id)
) with (fillfactor = 80);

create index if not exists aside_due on tidegate.aside (lane, due_at)
    where state in ('retry', 'later');
-- Of a key, what holds back the rest.
create index if not exists aside_key on tidegate.aside (lane, sink, key_hash, id)
    where key_hash is not null and (state in ('retry', 'behind') or on_dead <> 'skip');
create index if not exists aside_dead on tidegate.aside (id) where state = 'dead';

-- Who changed what was set aside, and why.
create table if not exists tidegate.audit (
    at timestamptz not null default now(),
    who text not null,
    what text not null,
    messages bigint not null,
    why text not null
);

do $$
begin
    alter table tidegate.message alter column payload set compression lz4;
exception
    when feature_not_supported then null;
end
$$;

-- How many messages are outstanding, or more, never less: all ids from the first that is still to be
-- read on, and what was set aside and is not dead. Cursors are looked at first; only if `most` is
-- reached by them, or null, lanes are asked for their first message (index message_lane).
create or replace function tidegate.outstanding(most bigint)
returns bigint
language plpgsql
stable
as $$
declare
    last_id bigint;
    read_to bigint;
    stuck bigint;
begin
    select case when s.is_called then s.last_value else 0 end into last_id
    from tidegate.message_id s;
    select count(*) into stuck
    from (select from tidegate.aside a where a.state <> 'dead' limit most) a;
    select min(c.cursor) into read_to
    from (
        select l.cursor from tidegate.lane l
        union all
        select g.cursor from tidegate.lag g
    ) c;
    if last_id - read_to + stuck < most then
        return last_id - read_to + stuck;
    end if;
    select coalesce(min(f.id) - 1, last_id) into read_to
    from (
        select l.lane, l.cursor from tidegate.lane l
        union all
        select g.lane, g.cursor from tidegate.lag g
    ) c
    cross join lateral (
        select m.id
        from tidegate.message m
        where m.lane = c.lane and m.id > c.cursor
        order by m.id
        limit 1
    ) f;
    return greatest(last_id - read_to, 0) + stuck;
end
$$;

-- Says why a message is refused, or why all are.
create or replace function tidegate.refuse(
    topic text, key text, payload_bytes integer, headers jsonb, most_outstanding bigint
)
returns void
language plpgsql
as $$
declare
    outstanding bigint;
    header_bytes bigint;
begin
    if topic is null or topic = '' or topic ~ '[[:cntrl:]*]' then
        raise exception using errcode = 'TG400', message =
            'a topic has at least one character, no `*` and no control characters';
    elsif octet_length(topic) > 255 then
        raise exception using errcode = 'TG400', message =
            format('the topic has %s bytes; 255 is the most', octet_length(topic));
    elsif octet_length(key) > 1024 then
        raise exception using errcode = 'TG400', message =
            format('the key has %s bytes; 1024 is the most', octet_length(key));
    elsif payload_bytes is null then
        raise exception using errcode = 'TG400', message = 'a message has a payload';
    elsif payload_bytes > 1048576 then
        raise exception using errcode = 'TG400', message =
            format('the payload has %s bytes; 1048576 is the most', payload_bytes);
    elsif headers is not null then
        if jsonb_typeof(headers) <> 'object'
            or exists (select from jsonb_each(headers) h where jsonb_typeof(h.value) <> 'string')
        then
            raise exception using errcode = 'TG400', message =
                'headers are an object of strings, such as {"content-type": "text/plain"}';
        end if;
        select sum(octet_length(h.key) + octet_length(h.value)) into header_bytes
        from jsonb_each_text(headers) h;
        if header_bytes > 8192 then
            raise exception using errcode = 'TG400', message =
                format('the set of headers has %s bytes; 8192 is the most', header_bytes);
        end if;
    end if;
    if most_outstanding is not null then
        outstanding := tidegate.outstanding(most_outstanding);
        if outstanding >= most_outstanding then
            raise exception using errcode = 'TG429', message = format(
                '%s messages are outstanding, and %s is the limit: publish later',
                outstanding, most_outstanding);
        end if;
    end if;
end
$$;

-- Publishes bytes in the caller's transaction; returns the id. Headers declare what they are.
create or replace function tidegate.publish_bytes(
    topic text, key text, payload bytea, headers jsonb default null,
    not_before timestamptz default null
)
returns bigint
language plpgsql
as $$
#variable_conflict use_variable
declare
    current_segment smallint;
    most bigint;
    message_id bigint;
begin
    select o.segment, o.most_outstanding into current_segment, most from tidegate.outbox o;
    if topic is null or topic = '' or octet_length(topic) > 255 or topic ~ '[[:cntrl:]*]'
        or octet_length(key) > 1024 or payload is null or octet_length(payload) > 1048576
        or headers is not null or most is not null
    then
        perform tidegate.refuse(topic, key, octet_length(payload), headers, most);
    end if;
    perform pg_current_xact_id();
    message_id := nextval('tidegate.message_id');
    insert into tidegate.message (id, lane, segment, topic, key, payload, headers, not_before)
    values (message_id, coalesce(hashtextextended(key, 0), message_id) & 63, current_segment,
        topic, key, payload, headers, not_before);
    return message_id;
end
$$;

-- Publishes JSON in the caller's transaction; returns the id.
create or replace function tidegate.publish(
    topic text, key text, payload jsonb, headers jsonb default null,
    not_before timestamptz default null
)
returns bigint
language plpgsql
as $$
begin
    return tidegate.publish_bytes(
        topic, key, convert_to(payload::text, 'UTF8'), headers, not_before);
end
$$;

-- Publishes many messages in the order of the arrays; returns their ids in this order.
create or replace function tidegate.publish_many_bytes(
    topics text[], keys text[], payloads bytea[], headers jsonb[] default null,
    not_before timestamptz[] default null
)
returns setof bigint
language plpgsql
as $$
#variable_conflict use_variable
declare
    current_segment smallint;
    most bigint;
    many integer := cardinality(topics);
begin
    if cardinality(keys) <> many or cardinality(payloads) <> many
        or cardinality(headers) <> many or cardinality(not_before) <> many
    then
        raise exception using errcode = 'TG400', message = 'the arrays have unequal lengths';
    end if;
    select o.segment, o.most_outstanding into current_segment, most from tidegate.outbox o;
    if most is not null then
        perform tidegate.refuse('-', null, 0, null, most);
    end if;
    perform tidegate.refuse(m.topic, m.key, octet_length(m.payload), m.headers, null)
    from unnest(topics, keys, payloads, headers) as m (topic, key, payload, headers)
    where m.topic is null or m.topic = '' or octet_length(m.topic) > 255
        or m.topic ~ '[[:cntrl:]*]' or octet_length(m.key) > 1024 or m.payload is null
        or octet_length(m.payload) > 1048576 or m.headers is not null;
    perform pg_current_xact_id();
    return query
    insert into tidegate.message (id, lane, segment, topic, key, payload, headers, not_before)
    select m.id, coalesce(hashtextextended(m.key, 0), m.id) & 63, current_segment,
        m.topic, m.key, m.payload, m.headers, m.not_before
    from (
        select nextval('tidegate.message_id') as id, u.*
        from (
            select *
            from unnest(topics, keys, payloads, headers, not_before) with ordinality
                as u (topic, key, payload, headers, not_before, place)
            order by u.place
        ) u
    ) m
    returning id;
end
$$;

-- Publishes many JSON messages in the order of the arrays; returns their ids in this order.
create or replace function tidegate.publish_many(
    topics text[], keys text[], payloads jsonb[], headers jsonb[] default null,
    not_before timestamptz[] default null
)
returns setof bigint
language sql
as $$
    select tidegate.publish_many_bytes(
        topics, keys,
        array(
            select convert_to(p.payload::text, 'UTF8')
            from unnest(payloads) with ordinality as p (payload, place)
            order by p.place
        ),
        headers, not_before)
$$;

insert into tidegate.migration (version, name)
values (4, '0004_outbox')
on conflict (version) do nothing;
