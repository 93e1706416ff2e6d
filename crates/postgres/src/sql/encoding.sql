-- How the database encodes texts.
select getdatabaseencoding()::text as encoding
