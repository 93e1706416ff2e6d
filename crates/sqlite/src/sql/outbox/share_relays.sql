-- How many relays live. Reads one row per relay.
SELECT count(*) FROM relay
