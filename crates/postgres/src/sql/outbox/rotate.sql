-- Goes on with the next segment if it is time. See migrations/0018_retention.sql.
--
-- $1 age in ms
select tidegate.rotate($1)
