-- Makes dead messages due again, with all attempts, and leaves an audit line. The first of each key is to
-- be found anew.
--
-- Index: adopted_aside_dead.
--
-- $1 adopted; $2 ids, $3 topic, $4 sink, $5 part of the reason, each or null; $6 who, $7 why
with chosen as materialized (
    select a.row_key
    from tidegate.adopted_aside a
    where a.adopted = $1 and a.state = 'dead' and ($2 is null or a.id = any ($2))
        and ($3 is null or a.topic = $3) and ($4 is null or a.sink = $4)
        and ($5 is null or position($5 in a.reason) > 0)
    order by a.row_key
    for update
),
retried as (
    update tidegate.adopted_aside a
    set state = 'retry', attempts = 0, on_dead = 'skip', due_at = now()
    from chosen c
    where a.adopted = $1 and a.row_key = c.row_key
),
disturbed as (
    update tidegate.adopted l set disturbed = true where l.adopted = $1
),
noted as (
    insert into tidegate.adopted_audit (adopted, who, what, messages, why)
    select $1, $6, 'retry', count(*), $7 from chosen
)
select count(*) as messages from chosen
