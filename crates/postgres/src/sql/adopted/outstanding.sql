-- How many rows are pending and not dead.
--
-- $1 adopted, $2 values of the mapping
select count(*) as messages
from {table} t
where {pending} and {filter}
    and (not exists (
        select from tidegate.adopted_aside a
        where a.adopted = $1 and a.row_key = {row_key} and a.state = 'dead'
    )) is true
