-- The leases of the batches ?1 that have expired at ?2. Served by the key of lease.
SELECT batch_id, lo, hi, fence, tries, lost, suspect
FROM lease
WHERE batch_id IN (SELECT value FROM json_each(?1)) AND expires_ms <= ?2
ORDER BY batch_id, hi
