-- How many tables and views of anybody there are, to tell an empty database from a foreign one.
SELECT count(*) FROM sqlite_schema
