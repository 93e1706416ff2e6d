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
-- Of each key that is parked, the message for which the later ones wait.
parked as materialized (
    select p.sink, p.key_hash, min(p.id) as id
    from tidegate.adopted_aside p
    where p.adopted = $1 and p.state = 'dead' and p.on_dead = 'park' and p.key_hash is not null
    group by p.sink, p.key_hash
),
stuck as (
    select {aside_topic_shown} as topic, a.state,
        a.state = 'dead' or a.state = 'behind' and coalesce(p.id < a.id, false) as dead,
        case when a.state <> 'dead' then
            (select {published} from {table} t where {same_row} limit 1)
        end as published_ms
    from tidegate.adopted_aside a
    left join parked p on p.sink = a.sink and p.key_hash = a.key_hash
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
