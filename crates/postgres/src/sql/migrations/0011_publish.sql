-- Publishing a single message without headers looks at nothing but the size of its payload. May be applied twice.

-- Writes the functions that publish. The segment to which they append and the limit stand in their text:
-- to look them up would cost each message as much as all checks. Topic and key of a single message are not looked
-- at, because each function in an expression is set up anew in each transaction: relays set aside what is too long,
-- and sinks judge the rest. `current_timestamp` costs less than `now()`. It runs with the rights of its owner, whose
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
            %2$s
            -- The transaction has its number before the message has its id: readers rely on it to know
            -- which ids are decided (see horizon.rs).
            if octet_length(payload) <= 1048576 and headers is null and pg_current_xact_id() is not null then
                null;
            else
                perform tidegate.refuse(topic, key, octet_length(payload), headers, null);
                perform tidegate.check_json(payload, headers);
                perform pg_current_xact_id();
            end if;
            message_id := nextval('tidegate.message_id');
            insert into tidegate.message_%1$s (id, published_at, topic, key, payload, headers, not_before)
            values (message_id, current_timestamp, topic, key, payload, headers, not_before);
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

update tidegate.outbox set segment = segment;

insert into tidegate.migration (version, name)
values (11, '0011_publish')
on conflict (version) do nothing;
