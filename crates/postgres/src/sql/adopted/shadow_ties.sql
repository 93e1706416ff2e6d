-- How many pending rows have the same place in the order as another of their key.
--
-- $1 not used, $2 values of the mapping
select coalesce(sum(s.messages), 0)::bigint as messages
from (
    select count(*) as messages
    from {table} t
    where {pending} and {filter} and {key} is not null
    group by {key}, {order_columns}
    having count(*) > 1
) s
