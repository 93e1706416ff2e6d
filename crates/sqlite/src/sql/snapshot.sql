-- A snapshot by its address. Served by the key of snapshot.
SELECT body FROM snapshot WHERE hash = ?1
