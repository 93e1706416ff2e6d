-- Which batch a load is. May be applied twice.
CREATE INDEX IF NOT EXISTS batch_workload ON batch (workload, id);
