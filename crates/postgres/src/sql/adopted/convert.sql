-- Converts texts of the database's encoding, read as bytes, to UTF-8, in their order. Touches no table.
--
-- $1 texts, $2 name of the encoding
select convert(v.value, $2::name, 'UTF8') as text
from unnest($1) with ordinality as v (value, place)
order by v.place
