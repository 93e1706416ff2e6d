-- A snapshot's text.
--
-- Index: the key of snapshot.
--
-- $1 hash
select body
from tidegate.snapshot
where hash = $1
