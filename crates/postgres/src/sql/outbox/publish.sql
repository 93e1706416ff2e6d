-- Publishes messages in the order of the arrays. See migrations/0004_outbox.sql.
--
-- $1 topics, $2 keys, $3 payloads, $4 headers as JSON text, $5 delays in ms
select tidegate.publish_many_bytes(
    $1, $2, $3, $4::jsonb[],
    array(
        select now() + d.delay_ms * interval '1 ms'
        from unnest($5) with ordinality as d (delay_ms, place)
        order by d.place
    )
) as id
