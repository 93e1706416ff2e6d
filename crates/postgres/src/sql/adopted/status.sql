-- How the rows on each topic stand.
--
-- The pending rows are read as a whole, and so is what was set aside.
--
-- $1 adopted, $2 values of the mapping
with unread as (
    select coalesce({topic_shown}, '') as topic, {published} as published_ms
    from {table} t
    where {pending} and {filter}
        and not tidegate.is_set_aside($1, {row_key})
),
stuck as (
    select {aside_topic_shown} as topic, a.state,
        (select {published} from {table} t where {same_row} limit 1) as published_ms,
        a.state = 'dead' or a.state = 'behind' and exists (
            select
            from tidegate.adopted_aside p
            where p.adopted = a.adopted and p.sink = a.sink and p.key_hash = a.key_hash
                and p.id < a.id and p.state = 'dead' and p.on_dead = 'park'
        ) as dead
    from tidegate.adopted_aside a
    where a.adopted = $1
),
counted as (
    select u.topic, 'unread' as state, false as dead, u.published_ms from unread u
    union all
    select s.topic, s.state, s.dead, s.published_ms from stuck s
)
select c.topic,
    count(*) filter (where not c.dead) as outstanding,
    count(*) filter (where c.state = 'retry') as retrying,
    count(*) filter (where c.state in ('behind', 'later') and not c.dead) as waiting,
    count(*) filter (where c.state = 'unrouted') as unrouted,
    count(*) filter (where c.dead) as dead,
    (extract(epoch from now()) - min(c.published_ms) filter (where not c.dead) / 1000.0)
        ::double precision as oldest_seconds
from counted c
group by c.topic
order by c.topic collate "C"
