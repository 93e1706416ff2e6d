-- Renews the lease of an adopted table, or takes it if nobody has it. One row: without a fence if another relay has
-- it. Without an epoch nothing of this counts: one has to begin first.
-- `disturbed` tells that somebody changed what was set aside.
--
-- Index: the primary key of adopted.
--
-- $1 adopted, $2 relay, $3 lease in ms, $4 fence that is held, or zero
with durable as materialized (
    -- A fence that a crash takes back would be given to two.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
mine as materialized (
    select l.adopted, l.fence = $4 as is_held, l.disturbed
    from tidegate.adopted l
    where l.adopted = $1 and (l.fence = $4 or l.expires_at <= now())
    for update
),
leased as (
    update tidegate.adopted l
    set fence = case when m.is_held then l.fence else nextval('tidegate.fence') end, relay = $2,
        settled = case when m.is_held then l.settled else 0 end,
        expires_at = now() + $3 * interval '1 ms'
    from mine m
    where l.adopted = m.adopted
    returning l.fence, l.last_id, m.disturbed, l.settled
),
first as (
    insert into tidegate.adopted (adopted, fence, relay, expires_at)
    select $1, nextval('tidegate.fence'), $2, now() + $3 * interval '1 ms'
    where not exists (select from tidegate.adopted l where l.adopted = $1)
    on conflict (adopted) do nothing
    returning fence, last_id, disturbed, settled
)
select tidegate.current_epoch() as epoch, l.fence, l.last_id, l.disturbed, l.settled
from durable
left join (
    select * from leased
    union all
    select * from first
) l on true
