-- One row, whatever became of it: by its own key, or as what was set aside with an id.
--
-- $1 adopted, $2 values of the mapping, $3 key of the row or null, $4 id
select {columns}, not ({pending}) as sent
from {table} t
join (
    select $3 as row_key where $3 is not null
    union
    select a.row_key from tidegate.adopted_aside a where a.adopted = $1 and a.id = $4
) a on {same_row}
limit 1
