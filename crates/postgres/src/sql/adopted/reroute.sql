-- What had no route and has one now waits in its key's line, or is due if it has no key.
--
-- Index: the primary key of adopted_aside.
--
-- $1 adopted; routes in the order in which they decide: $2 regular expressions, $3 sinks
update tidegate.adopted_aside a
set sink = r.sink, due_at = now(),
    state = case when a.key_hash is null then 'retry' else 'behind' end
from tidegate.adopted_aside u
cross join lateral (
    select r.sink
    from unnest($2, $3) with ordinality as r (regex, sink, place)
    where u.topic ~ r.regex
    order by r.place
    limit 1
) r
where u.adopted = $1 and u.state = 'unrouted' and a.adopted = u.adopted and a.row_key = u.row_key
