-- Removes dead messages for good, and leaves an audit line: left where it was, a message would count as
-- sent. Returns the lanes, where the first of each key is to be found anew.
--
-- Indexes: aside_dead; by id of each segment.
--
-- $1 ids, $2 topic, $3 sink, $4 part of the reason, each or null; $5 who, $6 why
with found as materialized (
    select a.lane, a.id
    from tidegate.aside a
    where a.state = 'dead' and ($1 is null or a.id = any ($1))
        and ($2 is null or a.topic = $2) and ($3 is null or a.sink = $3)
        and ($4 is null or position($4 in a.reason) > 0)
),
-- Lanes first, as relays do.
lanes as materialized (
    select l.lane
    from tidegate.lane l
    where l.lane in (select lane from found)
    order by l.lane
    for update
),
chosen as materialized (
    select a.lane, a.id
    from lanes l
    join found f on f.lane = l.lane
    join tidegate.aside a on a.lane = f.lane and a.id = f.id
    where a.state = 'dead'
    order by a.lane, a.id
    for update of a
),
dropped as (
    delete from tidegate.aside a
    using chosen c
    where a.lane = c.lane and a.id = c.id
),
removed as (
    delete from tidegate.message m
    using chosen c
    where m.id = c.id
),
disturbed as (
    update tidegate.lane l set disturbed = true from lanes d where l.lane = d.lane
),
noted as (
    insert into tidegate.audit (who, what, messages, why)
    select $5, 'drop', count(*), $6 from chosen
)
select count(*) as messages, array(select lane from lanes) as lanes from chosen
