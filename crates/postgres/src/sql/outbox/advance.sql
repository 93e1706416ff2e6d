-- Moves lanes on for which nothing is set aside or lags: what settle.sql does for them, planned once per
-- connection. Returns the lanes that it moved.
--
-- Indexes: the primary keys.
--
-- $1 lanes, $2 their fences, $3 their cursors, $4 number of the settlement
select tidegate.advance($1, $2, $3, $4) as held
