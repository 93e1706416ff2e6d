-- Moves lanes on of which nothing was set aside: what settle.sql does for them, planned once per
-- connection. Returns the lanes that it moved.
--
-- Indexes: the primary keys.
--
-- $1 epoch, $2 lanes, $3 their fences, $4 their cursors, $5 what these do not tell, $6 number of the settlement
select tidegate.advance($1, $2, $3, $4, $5, $6) as held
