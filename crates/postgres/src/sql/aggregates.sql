-- The parts of a batch's aggregates.
--
-- Index: the key of part.
--
-- $1 batch
select body
from tidegate.part
where batch_id = $1
order by accumulator
