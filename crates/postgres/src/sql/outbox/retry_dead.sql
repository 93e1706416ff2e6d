-- Makes dead messages due again, with all attempts, and leaves an audit line.
--
-- Index: aside_dead.
--
-- $1 ids, $2 topic, $3 sink, $4 part of the reason, each or null; $5 who, $6 why
with chosen as materialized (
    select a.lane, a.id
    from tidegate.aside a
    where a.state = 'dead' and ($1 is null or a.id = any ($1))
        and ($2 is null or a.topic = $2) and ($3 is null or a.sink = $3)
        and ($4 is null or position($4 in a.reason) > 0)
    order by a.lane, a.id
    for update
),
retried as (
    update tidegate.aside a
    set state = 'retry', attempts = 0, on_dead = 'skip', due_at = now()
    from chosen c
    where a.lane = c.lane and a.id = c.id
),
noted as (
    insert into tidegate.audit (who, what, messages, why)
    select $5, 'retry', count(*), $6 from chosen
)
select count(*) as messages from chosen
