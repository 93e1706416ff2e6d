-- Gives one page of dead messages up for good. Their rows are marked as done, or they would be read again. The keys
-- for which the first message is to be found anew are noted. The table's lease is locked first, as relays do.
--
-- Indexes: adopted_aside_dead, adopted_aside_id, the primary keys.
--
-- $1 adopted, $2 values of the mapping; $3 ids, $4 topic, $5 sink, $6 part of the reason, each or null; $7 after,
-- $8 most; $9 who, $10 why, $11 audit line
with durable as materialized (
    -- Whoever decided it is told that it is done: a crash must not take it back.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
held as materialized (
    select l.adopted from tidegate.adopted l where l.adopted = $1 for update
),
page as materialized (
    select d.id from tidegate.dead_of_adopted($1, $7, $8) as d (id) where $3 is null
    union all
    (select i.id from unnest($3) as i (id) where i.id > $7 order by i.id limit $8)
),
finished as materialized (
    select a.row_key, a.sink, a.key_hash, a.on_dead
    from page p
    cross join lateral (
        select a.*
        from tidegate.adopted_aside a
        where a.adopted = $1 and a.id = p.id and a.state = 'dead'
            and ($4 is null or a.topic = $4) and ($5 is null or a.sink = $5)
            and ($6 is null or position($6 in a.reason) > 0)
        limit 1
        for update
    ) a
    where (select count(*) from held) >= 0
),
dropped as (
    delete from tidegate.adopted_aside a
    where a.adopted = $1 and a.row_key = any (array(select d.row_key from finished d))
),
done as (
    {done}
)
select f.messages, p.examined_to,
    tidegate.note_adopted_audit($1, $11, $9, 'drop', $10, f.messages) as audit_line
from durable
cross join (
    select count(*) as messages,
        tidegate.note_adopted_keys(
            $1, array_agg(f.sink) filter (where f.key_hash is not null and f.on_dead <> 'skip'),
            array_agg(f.key_hash) filter (where f.key_hash is not null and f.on_dead <> 'skip'), interval '0 s'
        ) as noted
    from finished f
) f
cross join (select case when count(*) = $8 then max(id) end as examined_to from page) p
