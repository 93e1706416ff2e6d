-- A batch's pages, by their lowest index.
--
-- Index: the key of page.
--
-- $1 batch, $2 from this lowest index on, $3 at most
select lo, hi, indexes, results
from tidegate.page
where batch_id = $1 and lo >= $2
order by lo
limit $3
