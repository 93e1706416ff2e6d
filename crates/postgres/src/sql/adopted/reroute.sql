-- What goes to another sink now waits there in its key's line, or is due if it has no key. What nobody
-- takes any more has no route.
--
-- Index: the primary key of adopted_aside.
--
-- $1 adopted; routes in the order in which they decide: $2 regular expressions, $3 sinks
update tidegate.adopted_aside a
set sink = coalesce(r.sink, ''),
    state = case
        when a.state = 'dead' then a.state
        when r.sink is null then 'unrouted'
        when a.state = 'later' then a.state
        when a.key_hash is null then 'retry'
        else 'behind'
    end,
    due_at = case when a.state in ('dead', 'later') then a.due_at else now() end
from tidegate.adopted_aside u
left join lateral (
    select r.sink
    from unnest($2, $3) with ordinality as r (regex, sink, place)
    where u.topic ~ r.regex
    order by r.place
    limit 1
) r on true
where u.adopted = $1 and (u.state <> 'dead' or u.on_dead <> 'skip')
    and u.sink <> coalesce(r.sink, '')
    and a.adopted = u.adopted and a.row_key = u.row_key and a.state = u.state
