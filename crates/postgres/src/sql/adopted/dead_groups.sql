-- The dead by topic, sink and reason, most first.
--
-- Index: adopted_aside_dead.
--
-- $1 adopted, $2 most
select a.topic, a.sink, a.reason, count(*) as messages, min(a.id) as first, max(a.id) as last
from tidegate.adopted_aside a
where a.adopted = $1 and a.state = 'dead'
group by a.topic, a.sink, a.reason
order by count(*) desc, min(a.id)
limit $2
