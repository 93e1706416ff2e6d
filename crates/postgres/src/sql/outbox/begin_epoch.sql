-- Begins an epoch unless there is one.
--
-- Indexes: the primary keys of lane and progress.
select tidegate.begin_epoch()
