-- Reads rows that are pending, in the order that the table can express, and what was set aside and is
-- due. Changes nothing. Reads by state, never from a remembered position: a row that commits late is
-- found as any other. Rows come in no order; `kind` tells what a row is:
--   next  one row: when the next that was set aside is due, and the store's epoch
--   lane  a row for the reader `n`, the k-th of those `found`
--   late  a row for the reader `n` from behind the front
--   due   a row that was set aside; without `row_key` it is not pending any more
--   unchosen  a row that was set aside, which the mapping's filter leaves out now
--
-- Indexes: the adopted table's on its order columns and its id; see migrations/0023_adopted_due.sql for what is due.
-- Both exclusions are filters, not joins, so that rows come in the order of the index and a limit ends them.
-- Sizes are looked at first, so that wide rows are not read in vain.
--
-- $1 adopted, $2 values of the mapping; readers: $3 number, $4 and $5 regular expressions for topics to
-- take and to leave, $6 most messages; $7 rows that are in memory; set aside: $8 ids under way, $9 most
-- heads; $10 most bytes, $11 most behind a head, $12 sinks that take no more;
-- the front, before which everything was set aside: $13 place or null, $14 whether rows at the place are before it;
-- $15 rows behind it that were not set aside
with aside as materialized (
    select d.* from tidegate.due_adopted($1, $8, $12, $9, $11) as d
),
unchosen as materialized (
    select a.id, a.key_hash from aside a where a.id = a.of_head and not ({chosen})
),
due as materialized (
    select a.id, a.row_key, a.attempts, a.sink, a.key_hash, a.state,
        sum(coalesce(t.bytes, 0)) over (order by a.id) as total,
        row_number() over (order by a.id) as k
    from aside a
    left join lateral (
        select {bytes} as bytes from {table} t where {same_row} and {pending} limit 1
    ) t on true
    where a.id is not null and a.of_head not in (select u.id from unchosen u)
)
select 'next' as kind, null::integer as n, null::bigint as k, null::bigint as found,
    null::bigint as id, null::integer as attempts, null as sink, null::bigint as key_hash,
    null as state, null as row_key, null as topic, null as key, null::bytea as payload,
    {no_headers} as header_values, null as header_map, null::bigint as published_ms,
    (select a.due_seconds from aside a where a.id is null) as next_due_seconds,
    tidegate.current_epoch() as epoch
union all
select 'lane', r.n, s.k, s.found, null, null, null, null, null, s.row_key, s.topic, s.key, s.payload,
    s.header_values, s.header_map, s.published_ms, null, null
from unnest($3, $4, $5, $6) as r (n, takes, leaves, most)
cross join lateral (
    select {columns}, t.tidegate_place as k, t.tidegate_found as found
    from (
        select t.*, count(*) over () as tidegate_found
        from (
            select t.*, row_number() over w as tidegate_place, sum({bytes}) over w as tidegate_bytes
            from {table} t
            where {pending} and {filter} and {aged} and {from_front}
                and {row_key} not in (select unnest($7))
                and not tidegate.is_set_aside($1, {row_key})
                and (r.takes is null or coalesce({topic}, '') ~ r.takes)
                and (r.leaves is null or coalesce({topic}, '') !~ r.leaves)
            window w as ({order} rows unbounded preceding)
            {order}
            limit r.most + 1
        ) t
    ) t
    where t.tidegate_place <= r.most and (t.tidegate_bytes <= $10 or t.tidegate_place = 1)
) s
union all
select 'late', r.n, 0, null, null, null, null, null, null, s.row_key, s.topic, s.key, s.payload,
    s.header_values, s.header_map, s.published_ms, null, null
from unnest($3, $4, $5, $6) as r (n, takes, leaves, most)
cross join lateral (
    select {columns}
    from unnest($15) as a (row_key)
    cross join lateral (
        select t.* from {table} t where {same_row} and {pending} and {filter} limit 1
    ) t
    where a.row_key not in (select unnest($7)) and not tidegate.is_set_aside($1, a.row_key)
        and (r.takes is null or coalesce({topic}, '') ~ r.takes)
        and (r.leaves is null or coalesce({topic}, '') !~ r.leaves)
    limit r.most
) s
union all
select 'due', null, null, null, a.id, a.attempts, a.sink, a.key_hash, a.state, t.row_key, t.topic, t.key,
    t.payload, t.header_values, t.header_map, t.published_ms, null, null
from due a
left join lateral (
    select {columns} from {table} t where {same_row} and {pending} limit 1
) t on true
where a.total <= $10 or a.k = 1
union all
select 'unchosen', null, null, null, u.id, null, null, u.key_hash, null, null, null, null, null, {no_headers}, null,
    null, null, null
from unchosen u
