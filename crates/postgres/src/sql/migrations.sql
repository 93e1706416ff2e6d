-- The migrations that were applied.
--
-- Index: the key of migration.
select version
from tidegate.migration
order by version
