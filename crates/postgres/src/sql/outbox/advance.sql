-- Moves lanes on of which nothing was set aside: what settle.sql does for them, planned once per
-- connection. Returns the lanes that it moved.
--
-- Indexes: the primary keys.
--
-- $1 lanes, $2 their fences, $3 their cursors, $4 what these do not tell, $5 number of the settlement
select tidegate.advance($1, $2, $3, $4, $5) as held
