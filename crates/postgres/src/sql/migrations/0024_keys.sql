-- Publishing refuses an empty key and control characters in a key, in every way. What was stored before is delivered as
-- it is. May be applied twice.

-- Says why a message is refused, or why all are. Control characters are named by their numbers: what a class of
-- characters contains depends on the locale.
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
    if topic is null or topic = '' or topic ~ '[\u0001-\u001f\u007f-\u009f*]' then
        raise exception using errcode = 'TG400', message =
            'a topic has at least one character, no `*` and no control characters';
    elsif key = '' or key ~ '[\u0001-\u001f\u007f-\u009f]' then
        raise exception using errcode = 'TG400', message =
            'a key has at least one character and no control characters; leave it out for no order';
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

-- Writes the functions that publish. The segment to which they append and the limit stand in their text: to look them
-- up would cost each message as much as all checks. A message without flaws passes one expression; only one that does
-- not is looked at again for the reason. Topic and key are looked at together, with a character between them that
-- neither may have: a second regular expression would cost as much as the first. Constraints on the tables would do the
-- same for more: PostgreSQL reads them anew for each statement, and they cannot tell by how much a name is too long. It
-- runs with the rights of its owner, whose the functions are.
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
            -- The transaction has its number, and the table's lock, before the message has its id: relays rely on it
            -- to know which ids are decided (see horizon.rs).
            if octet_length(payload) <= 1048576 and headers is null and octet_length(topic) <= 255
                and octet_length(key) > 1024 is not true
                and (topic || chr(1) || coalesce(key, '-'))
                    ~ '^[^\u0001-\u001f\u007f-\u009f*]+\u0001[^\u0001-\u001f\u007f-\u009f]+$'
                and pg_current_xact_id() is not null
            then
                null;
            else
                perform tidegate.refuse(topic, key, octet_length(payload), headers, null);
                perform tidegate.check_json(payload, headers);
                perform pg_current_xact_id();
            end if;
            insert into tidegate.message_%1$s (id, published_at, topic, key, payload, headers, not_before)
            values (nextval('tidegate.message_id'), current_timestamp, topic, key, payload, headers, not_before)
            returning id into message_id;
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
            where m.topic is null or octet_length(m.topic) > 255
                or (m.topic || chr(1) || coalesce(m.key, '-'))
                    !~ '^[^\u0001-\u001f\u007f-\u009f*]+\u0001[^\u0001-\u001f\u007f-\u009f]+$'
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
values (24, '0024_keys')
on conflict (version) do nothing;
