-- Takes a batch's ranges away from their holders. The rows stay, for the count of what was never
-- settled. Served by the key of lease.
UPDATE lease SET fence = ?2 WHERE batch_id = ?1
