-- Reads what was set aside in some lanes and is due, each with what waits behind it. Changes nothing.
--
-- Indexes: aside_due, aside_key and its primary key; that by id of each segment for their messages.
--
-- $1 lanes, $2 ids under way, $3 sinks that take no more, $4 most heads, $5 most behind a head, $6 most bytes
--
-- Of a key, only the first that holds it is due; what was delayed may have to wait, too, but that is not
-- known here.
with head as materialized (
    select a.lane, a.id, a.sink, a.key_hash, a.state
    from tidegate.aside a
    where a.lane = any ($1) and a.state in ('retry', 'later') and a.due_at <= now()
        and a.id <> all ($2) and a.sink <> all ($3)
        and (a.state = 'later' or a.key_hash is null or not exists (
            select
            from tidegate.aside f
            where f.lane = a.lane and f.sink = a.sink and f.key_hash = a.key_hash and f.id < a.id
                and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
        ))
    order by a.due_at, a.id
    limit $4
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
            bool_and(b.state = 'behind' and b.id <> all ($2)) over (order by b.id) as in_line
        from (
            select b.lane, b.id, b.state
            from tidegate.aside b
            where b.lane = h.lane and b.sink = h.sink and b.key_hash = h.key_hash and b.id > h.id
                and (b.state in ('retry', 'behind') or b.on_dead <> 'skip')
            order by b.id
            limit $5
        ) b
    ) b
    where h.state = 'retry' and b.in_line
),
due as materialized (
    select a.lane, a.id, a.attempts, a.sink, a.topic, a.state,
        case when m.id is null then a.key else m.key end as key,
        coalesce(m.payload, a.payload) as payload,
        coalesce(m.headers, a.headers) as headers,
        coalesce(m.published_at, a.published_at) as published_at,
        sum(octet_length(coalesce(m.payload, a.payload))) over (order by a.id) as total,
        row_number() over (order by a.id) as k
    from line l
    join tidegate.aside a on a.lane = l.lane and a.id = l.id
    left join lateral (
        select m.id, m.key, m.payload, m.headers, m.published_at
        from tidegate.message m
        where m.id = a.id
        limit 1
    ) m on true
)
select d.id, d.lane, d.topic, d.key, d.payload, d.headers::text as headers, d.published_at, d.attempts, d.sink,
    d.state
from due d
where d.total <= $6 or d.k = 1
