-- Lets one process migrate at a time, until its transaction ends. The number is this store's own.
select pg_advisory_xact_lock(7310579601827366757)
