-- What was set aside, in the order of ids.
--
-- $1 adopted, $2 values of the mapping, $3 state or null; $4 ids, $5 topic, $6 sink, $7 part of the
-- reason, each or null; $8 after, $9 most
select a.id, a.topic, a.sink, a.state, a.attempts, a.reason, a.on_dead,
    (select {key_shown} from {table} t where {same_row} limit 1) as key,
    case when a.state in ('retry', 'later')
        then greatest(extract(epoch from a.due_at - now()), 0)::double precision
    end as due_seconds
from tidegate.adopted_aside a
where a.adopted = $1 and ($3 is null or a.state = $3) and ($4 is null or a.id = any ($4))
    and ($5 is null or a.topic = $5) and ($6 is null or a.sink = $6)
    and ($7 is null or position($7 in a.reason) > 0)
    and a.id > $8
order by a.id
limit $9
