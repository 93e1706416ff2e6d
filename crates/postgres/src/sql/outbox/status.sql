-- How the messages on each topic stand.
--
-- Indexes: by id of each segment, from the first cursor on; aside is read as a whole.
with lane as materialized (
    select l.lane, l.cursor, l.state from tidegate.lanes l
),
unread as (
    select m.id, l.lane, m.topic, m.published_at
    from tidegate.message m
    join lane l on l.lane = tidegate.lane_of(m.key, m.id)
    where m.id > (select min(tidegate.all_read_to(l.cursor, l.state)) from lane l)
        and m.id > case when l.state is null then l.cursor
            else tidegate.read_to(l.cursor, l.state, m.topic)
        end
),
-- Of each key that is parked, the message for which the later ones wait.
parked as materialized (
    select p.lane, p.sink, p.key_hash, min(p.id) as id
    from tidegate.aside p
    where p.state = 'dead' and p.on_dead = 'park' and p.key_hash is not null
    group by p.lane, p.sink, p.key_hash
),
stuck as (
    select a.id, a.topic, a.state, a.published_at,
        a.state = 'dead' or a.state = 'behind' and coalesce(p.id < a.id, false) as dead
    from tidegate.aside a
    left join parked p on p.lane = a.lane and p.sink = a.sink and p.key_hash = a.key_hash
),
counted as (
    select u.topic, 'unread' as state, false as dead, u.published_at
    from unread u
    where not exists (select from tidegate.aside a where a.lane = u.lane and a.id = u.id)
    union all
    -- The age of dead messages is not shown, so it is not looked up: there may be millions.
    select s.topic, s.state, s.dead,
        case when not s.dead then
            coalesce(s.published_at, (select m.published_at from tidegate.message m where m.id = s.id))
        end
    from stuck s
)
select c.topic,
    count(*) filter (where not c.dead) as outstanding,
    count(*) filter (where c.state = 'retry') as retrying,
    count(*) filter (where c.state in ('behind', 'later') and not c.dead) as waiting,
    count(*) filter (where c.state = 'unrouted') as unrouted,
    count(*) filter (where c.dead) as dead,
    extract(epoch from now() - min(c.published_at) filter (where not c.dead))::double precision
        as oldest_seconds
from counted c
group by c.topic
order by c.topic collate "C"
