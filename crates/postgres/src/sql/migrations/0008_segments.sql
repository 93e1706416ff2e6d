-- Messages in plain tables with one index each, by id, and publishing that looks nothing up: it costs little
-- more than an insert. May be applied twice.

-- The lane follows from the key: it is not stored.
create or replace function tidegate.lane_of(key text, id bigint)
returns smallint
language sql
immutable
parallel safe
as $$
    select (coalesce(hashtextextended(key, 0), id) & 63)::smallint
$$;

-- What were partitions become plain tables. Their rows stay where they are; indexes are built anew.
do $$
declare
    segment regclass;
    publisher text;
begin
    if (select c.relkind from pg_class c where c.oid = 'tidegate.message'::regclass) <> 'p' then
        return;
    end if;
    drop view if exists tidegate.messages;
    alter table tidegate.message rename to message_before;

    -- Append only. It has no rows of its own: they are in one of four segments in turn, of which one is
    -- written, and the others wait to be truncated as a whole.
    create table tidegate.message (
        id bigint not null,
        published_at timestamptz not null default now(),
        not_before timestamptz,
        topic text not null,
        key text,
        payload bytea not null,
        headers jsonb,
        constraint is_published_by_functions check (false) no inherit
    );
    foreach segment in array array[
        'tidegate.message_0', 'tidegate.message_1', 'tidegate.message_2', 'tidegate.message_3'
    ]::regclass[] loop
        execute format('alter table tidegate.message_before detach partition %s', segment);
        execute format(
            'alter table %s drop column lane, drop column segment, alter column id drop default', segment);
        execute format('create index on %s (id)', segment);
        execute format('alter table %s inherit tidegate.message', segment);
        begin
            execute format('alter table %s alter column payload set compression lz4', segment);
        exception
            when feature_not_supported then null;
        end;
        for publisher in
            select case when a.grantee = 0 then 'public' else a.grantee::regrole::text end
            from pg_class c
            cross join aclexplode(c.relacl) a
            where c.oid = 'tidegate.message_before'::regclass and a.privilege_type = 'INSERT'
                and a.grantee <> c.relowner
        loop
            execute format('grant insert, select (id) on %s to %s', segment, publisher);
        end loop;
    end loop;
    drop table tidegate.message_before;
end
$$;

-- Whether a segment has no messages.
create or replace function tidegate.is_empty(segment smallint)
returns boolean
language plpgsql
as $$
declare
    found_none boolean;
begin
    execute format('select not exists (select from tidegate.message_%s)', segment) into found_none;
    return found_none;
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
    select min(c.cursor) into read_to
    from (
        select l.cursor from tidegate.lane l
        union all
        select g.cursor from tidegate.lag g
    ) c;
    if last_id - read_to + stuck < most then
        return last_id - read_to + stuck;
    end if;
    select array_agg(c.cursor order by c.lane) into cursors
    from (
        select l.lane, least(l.cursor, min(g.cursor)) as cursor
        from tidegate.lane l
        left join tidegate.lag g on g.lane = l.lane
        group by l.lane
    ) c;
    select m.id - 1 into read_to
    from tidegate.message m
    where m.id > read_to and m.id > cursors[tidegate.lane_of(m.key, m.id) + 1]
    order by m.id
    limit 1;
    return greatest(last_id - coalesce(read_to, last_id), 0) + stuck;
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
            if topic is null or topic !~ '^[^[:cntrl:]*]+$' or octet_length(topic) > 255
                or octet_length(key) > 1024 or payload is null or octet_length(payload) > 1048576
                or headers is not null
            then
                perform tidegate.refuse(topic, key, octet_length(payload), headers, null);
                perform tidegate.check_json(payload, headers);
            end if;
            %2$s
            -- The transaction has its number before the message has its id: readers rely on it to know
            -- which ids are decided (see horizon.rs).
            message_id := case when pg_current_xact_id() is not null
                then nextval('tidegate.message_id')
            end;
            insert into tidegate.message_%1$s (id, topic, key, payload, headers, not_before)
            values (message_id, topic, key, payload, headers, not_before);
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

create or replace trigger write_publish
after insert or update on tidegate.outbox
for each row execute function tidegate.write_publish();

update tidegate.outbox set segment = segment;

-- Publishes JSON in the caller's transaction; returns the id. It is made part of the statement that calls it.
create or replace function tidegate.publish(
    topic text, key text, payload jsonb, headers jsonb default null,
    not_before timestamptz default null
)
returns bigint
language sql
as $$
    select tidegate.publish_bytes(
        topic, key, convert_to(payload::text, 'UTF8'), headers, not_before)
$$;

-- A payload as text; null if it is none.
create or replace function tidegate.as_text(payload bytea)
returns text
language plpgsql
immutable
as $$
begin
    return convert_from(payload, 'UTF8');
exception
    when data_exception then
        return null;
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
join tidegate.lane l on l.lane = tidegate.lane_of(m.key, m.id)
left join tidegate.aside a on a.lane = l.lane and a.id = m.id;

insert into tidegate.migration (version, name)
values (8, '0008_segments')
on conflict (version) do nothing;
