-- Pending rows at a place that were not set aside. There may be many at one place: a transaction writes all of its rows
-- at one time. So this joins, and does not probe one by one.
--
-- Indexes: the adopted table's on its order columns; the primary key of adopted_aside.
--
-- $1 adopted, $2 values of the mapping, $3 place, $4 most
with other as materialized (
    select {row_key} as row_key
    from {table} t
    where {pending} and {filter} and {at_place}
        and not exists (
            select from tidegate.adopted_aside a where a.adopted = $1 and a.row_key = {row_key}
        )
)
select array(select o.row_key from other o limit $4) as others
