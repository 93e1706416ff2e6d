-- The columns of a table, whatever its name is in: as SQL resolves it.
--
-- $1 name of the table
select c.oid, n.nspname::text as schema, c.relname::text as name,
    format('%I.%I', n.nspname, c.relname) as adopted, c.relkind in ('r', 'p') as is_table,
    a.attname::text as column, quote_ident(a.attname) as plain, a.attnotnull as is_not_null,
    format_type(a.atttypid, null) as type, format_type(a.atttypid, a.atttypmod) as exact_type,
    getdatabaseencoding()::text as encoding
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.oid = to_regclass($1)
order by a.attnum
