-- The dead by topic, sink and reason, most first.
--
-- Index: aside_dead.
select a.topic, a.sink, a.reason, count(*) as messages, min(a.id) as first, max(a.id) as last
from tidegate.aside a
where a.state = 'dead'
group by a.topic, a.sink, a.reason
order by count(*) desc, min(a.id)
limit $1
