-- The first pending rows, as a relay would read them. Touches nothing but the adopted table.
--
-- $1 not used, $2 values of the mapping, $3 most rows, $4 most bytes
select {columns}
from (
    select t.*, row_number() over w as tidegate_place, sum({bytes}) over w as tidegate_bytes
    from {table} t
    where {pending} and {filter}
    window w as ({order} rows unbounded preceding)
    {order}
    limit $3
) t
where t.tidegate_bytes <= $4 or t.tidegate_place = 1
