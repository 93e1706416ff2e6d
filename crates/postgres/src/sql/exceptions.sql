-- A batch's exceptions, by index.
--
-- Index: the key of exception.
--
-- $1 batch, $2 only this state or null, $3 from this index on, $4 at most
select index, attempts, state, reason
from tidegate.exception
where batch_id = $1 and ($2 is null or state = $2) and index >= $3
order by index
limit $4
