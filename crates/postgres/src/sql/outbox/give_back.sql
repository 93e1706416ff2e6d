-- Gives lanes back, and forgets a relay that ends.
--
-- Indexes: the primary keys.
--
-- $1 relay, $2 whether it ends, $3 lanes, $4 their fences
select tidegate.give_back($1, $2, $3, $4)
