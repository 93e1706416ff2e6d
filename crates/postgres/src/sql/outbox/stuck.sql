-- Messages that were set aside, in the order of their ids.
--
-- $1 state or null; $2 ids, $3 topic, $4 sink, $5 part of the reason, each or null; $6 after, $7 most
select a.id, a.topic, a.sink, a.state, a.attempts, a.reason, a.on_dead,
    coalesce(m.key, a.key) as key,
    case when a.state in ('retry', 'later')
        then greatest(extract(epoch from a.due_at - now()), 0)::double precision
    end as due_seconds
from tidegate.aside a
left join lateral (
    select m.key from tidegate.message m where m.id = a.id limit 1
) m on true
where ($1 is null or a.state = $1) and ($2 is null or a.id = any ($2))
    and ($3 is null or a.topic = $3) and ($4 is null or a.sink = $4)
    and ($5 is null or position($5 in a.reason) > 0)
    and a.id > $6
order by a.id
limit $7
