-- Looks at pending rows in their order, from a place on: how many there are, up to the most; where the last one is and
-- whether that is before the front; which were not set aside, and which of those are before the front.
--
-- Index: the adopted table's on its order columns.
--
-- $1 adopted, $2 values of the mapping; $3 place or null, $4 whether rows at the place are left out; $5 most; $6 front
-- or null, $7 whether rows at the front are before it
with page as materialized (
    select p.place, p.row_key, p.is_behind, row_number() over () as n,
        not tidegate.is_set_aside($1, p.row_key) as is_other
    from (
        select {place} as place, {row_key} as row_key, {before_front} as is_behind
        from {table} t
        where {pending} and {filter} and {from_place}
        order by {order_columns}
        limit $5
    ) p
)
select count(*) as rows,
    (select l.place from page l order by l.n desc limit 1) as last,
    (select l.is_behind from page l order by l.n desc limit 1) as is_behind,
    coalesce(array_agg(p.row_key) filter (where p.is_other), array[]::text[]) as others,
    coalesce(array_agg(p.row_key) filter (where p.is_other and p.is_behind), array[]::text[]) as late
from page p
