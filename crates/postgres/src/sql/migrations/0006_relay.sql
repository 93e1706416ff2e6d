-- What relays need when routes change, and what publishing refuses. May be applied twice.

-- What was done under other routes, if a sink lagged when they changed; null: nothing that matters.
alter table tidegate.lane add column if not exists before jsonb;

-- Refuses what headers declare to be JSON and is not.
create or replace function tidegate.check_json(payload bytea, headers jsonb)
returns void
language plpgsql
as $$
declare
    declared text;
begin
    select lower(trim(split_part(h.value, ';', 1))) into declared
    from jsonb_each_text(headers) h
    where lower(h.key) = 'content-type'
    limit 1;
    if declared = 'application/json' or declared like '%+json' then
        perform convert_from(payload, 'UTF8')::json;
    end if;
exception
    when data_exception then
        raise exception using errcode = 'TG400', message =
            'the payload is no JSON; declare another content-type if it is not meant to be';
end
$$;

-- Publishes bytes in the caller's transaction; returns the id. Headers declare what they are. One statement
-- if there is no limit: it costs little more than an insert.
create or replace function tidegate.publish_bytes(
    topic text, key text, payload bytea, headers jsonb default null,
    not_before timestamptz default null
)
returns bigint
language plpgsql
as $$
#variable_conflict use_variable
declare
    own xid8;
    message_id bigint;
begin
    if topic is null or topic = '' or octet_length(topic) > 255 or topic ~ '[[:cntrl:]*]'
        or octet_length(key) > 1024 or payload is null or octet_length(payload) > 1048576
        or headers is not null
    then
        perform tidegate.refuse(topic, key, octet_length(payload), headers, null);
        perform tidegate.check_json(payload, headers);
    end if;
    -- The transaction has its number before the message has its id (see horizon.rs).
    own := pg_current_xact_id();
    message_id := nextval('tidegate.message_id');
    insert into tidegate.message (id, lane, segment, topic, key, payload, headers, not_before)
    select message_id, coalesce(hashtextextended(key, 0), message_id) & 63, o.segment,
        topic, key, payload, headers, not_before
    from tidegate.outbox o
    where o.most_outstanding is null;
    if not found then
        perform tidegate.refuse('-', null, 0, null, o.most_outstanding) from tidegate.outbox o;
        insert into tidegate.message (id, lane, segment, topic, key, payload, headers, not_before)
        select message_id, coalesce(hashtextextended(key, 0), message_id) & 63, o.segment,
            topic, key, payload, headers, not_before
        from tidegate.outbox o;
    end if;
    return message_id;
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
    perform tidegate.check_json(m.payload, m.headers)
    from unnest(payloads, headers) as m (payload, headers)
    where m.headers is not null;
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

insert into tidegate.migration (version, name)
values (6, '0006_relay')
on conflict (version) do nothing;
