-- A batch's pages, by their lowest index.
--
-- Index: the key of page.
--
-- $1 batch, $2 begin here or later, $3 end beyond this index, $4 at most
select lo, hi, indexes, results
from tidegate.page
where batch_id = $1 and lo >= $2 and hi > $3
order by lo
limit $4
