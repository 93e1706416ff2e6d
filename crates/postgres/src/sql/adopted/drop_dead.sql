-- Gives dead messages up for good, and leaves an audit line. Their rows are marked as done, or they would
-- be read again. The first of each key is to be found anew.
--
-- Indexes: adopted_aside_dead, the primary key of the adopted table.
--
-- $1 adopted, $2 values of the mapping; $3 ids, $4 topic, $5 sink, $6 part of the reason, each or null;
-- $7 who, $8 why
with finished as materialized (
    select a.row_key
    from tidegate.adopted_aside a
    where a.adopted = $1 and a.state = 'dead' and ($3 is null or a.id = any ($3))
        and ($4 is null or a.topic = $4) and ($5 is null or a.sink = $5)
        and ($6 is null or position($6 in a.reason) > 0)
    order by a.row_key
    for update
),
dropped as (
    delete from tidegate.adopted_aside a
    using finished d
    where a.adopted = $1 and a.row_key = d.row_key
),
done as (
    {done}
),
disturbed as (
    update tidegate.adopted l set disturbed = true where l.adopted = $1
),
noted as (
    insert into tidegate.adopted_audit (adopted, who, what, messages, why)
    select $1, $7, 'drop', count(*), $8 from finished
)
select count(*) as messages from finished
