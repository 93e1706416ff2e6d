-- The database's clock in milliseconds since 1970. Reads no table.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER)
