-- Makes those wait who submit a batch of the same workload, until the transaction ends. The next
-- statement sees what they have stored.
--
-- $1 workload
select pg_advisory_xact_lock(hashtextextended('tidegate.submit ' || $1, 0))
