-- Whether ids that lanes have passed are drawn again.
--
-- Indexes: by id of each segment.
select coalesce((select e.ids_restarted from tidegate.epoch e), false) or tidegate.has_restarted_ids() as restarted
