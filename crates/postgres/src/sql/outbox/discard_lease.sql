-- Leases a segment to the one process that truncates it, or frees it. No row if another process has it, or if it is in
-- another turn.
--
-- Index: the primary key of segment (4 rows).
--
-- $1 turn, $2 for how many ms; null: not any more
update tidegate.segment s
set discarding_until = coalesce(now() + $2 * interval '1 ms', '-infinity')
where s.turn = $1 and ($2 is null or s.discarding_until <= now())
returning s.segment
