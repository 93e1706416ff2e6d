-- The number of the last settlement of relay ?1. Served by the key of settlement.
SELECT number FROM settlement WHERE relay = ?1
