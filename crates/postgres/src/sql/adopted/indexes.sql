-- The indexes of a table that can be used: their columns in order, without those that are only carried
-- along; an expression is null.
--
-- $1 table
select i.indisunique and i.indimmediate as is_unique, pg_get_expr(i.indpred, i.indrelid) as predicate,
    array(
        select a.attname::text
        from unnest(i.indkey::smallint[]) with ordinality as k (attnum, place)
        left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
        where k.place <= i.indnkeyatts
        order by k.place
    ) as columns
from pg_index i
join pg_class c on c.oid = i.indexrelid
join pg_am m on m.oid = c.relam
where i.indrelid = $1 and i.indisvalid and m.amname = 'btree'
