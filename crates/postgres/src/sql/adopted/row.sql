-- The row of what was set aside with an id, whatever became of it.
--
-- $1 adopted, $2 values of the mapping, $3 id
select {columns}, not ({pending}) as sent
from {table} t
join (
    select a.row_key from tidegate.adopted_aside a where a.adopted = $1 and a.id = $3
) a on {same_row}
limit 1
