-- Goes on with the next segment, if it is empty and the present one was opened long enough ago and has
-- messages.
--
-- $1 age in ms
with next as materialized (
    select o.segment as old, ((o.segment + 1) % 4)::smallint as new
    from tidegate.outbox o
    for update
),
turned as (
    update tidegate.outbox o
    set segment = n.new
    from next n
    join tidegate.segment s on s.segment = n.old
    where s.opened_at <= now() - $1 * interval '1 ms'
        and not tidegate.is_empty(n.old)
        and tidegate.is_empty(n.new)
    returning n.old, n.new
)
update tidegate.segment s
set closed_at = case when s.segment = t.old then now() end,
    opened_at = case when s.segment = t.old then s.opened_at else now() end
from turned t
where s.segment in (t.old, t.new)
