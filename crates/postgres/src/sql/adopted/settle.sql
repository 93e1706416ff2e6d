-- Marks rows as done, and writes what was set aside, if the fence still holds and this is the next settlement, or
-- the last one once more. Returns whether that is so, the keys for which nothing that holds them is left, and what
-- tells whether the store is where the relay left it: the epoch, and the number of the last settlement under the fence.
--
-- Of every key that it touches, the first that waits becomes due, unless one before it holds the key.
-- All parts of a statement see the tables as they were before: the first of a key is the lower one of
-- what stays and what comes in.
--
-- Rows of adopted_aside are found by their ids, one by one, and not by joins: no statistics make it read all of it.
--
-- Indexes: the primary key of the adopted table; those of adopted and adopted_aside; adopted_aside_id,
-- adopted_aside_key.
--
-- $1 adopted, $2 values of the mapping, $3 fence, $4 last id; done: $5 rows; $6 ids of
-- those that were set aside before; set aside: $7 id, $8 row or null if it was before, $9 topic,
-- $10 key, $11 sink, $12 state, $13 attempts, $14 reason, $15 what its death means, $16 delay in ms;
-- $17 number of the settlement, $18 epoch
with durable as materialized (
    -- A relay forgets what it has settled: a crash must not take it back.
    select set_config('synchronous_commit', coalesce(nullif(now.value, 'off'), 'local'), true)
    from current_setting('synchronous_commit') as now (value)
),
lease as materialized (
    select l.adopted, l.settled, tidegate.current_epoch() as epoch
    from tidegate.adopted l
    where l.adopted = $1 and l.fence = $3
    for update
),
held as materialized (
    select l.adopted
    from lease l
    where l.settled in ($17 - 1, $17) and l.epoch = $18
),
moved as (
    update tidegate.adopted l
    set last_id = greatest(l.last_id, $4), settled = $17
    from held h
    where l.adopted = h.adopted
),
gone as (
    delete from tidegate.adopted_aside a
    using held h
    where a.adopted = h.adopted and a.id = any (array(select unnest($6)))
    returning a.row_key, a.sink, a.key_hash
),
finished as (
    select d.row_key from unnest($5) as d (row_key) cross join held
    union all
    select g.row_key from gone g
),
done as (
    {done}
),
incoming as materialized (
    select i.id, coalesce(i.row_key, b.row_key) as row_key, i.topic, i.key_hash, i.sink, i.state,
        i.attempts, i.reason, i.on_dead, i.delay_ms,
        (i.state in ('retry', 'behind') or i.on_dead <> 'skip') as holds
    from unnest($7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        as i (id, row_key, topic, key_hash, sink, state, attempts, reason, on_dead, delay_ms)
    cross join held h
    left join lateral (
        select b.row_key from tidegate.adopted_aside b where b.adopted = $1 and b.id = i.id limit 1
    ) b on true
    where coalesce(i.row_key, b.row_key) is not null
),
failed as (
    {failed}
),
touched as materialized (
    select sink, key_hash from gone where key_hash is not null
    union
    select sink, key_hash from incoming where key_hash is not null
    union
    -- What goes to another sink now leaves the line that it was in.
    select a.sink, a.key_hash
    from incoming i
    cross join lateral (
        select a.sink, a.key_hash from tidegate.adopted_aside a where a.adopted = $1 and a.id = i.id limit 1
    ) a
    where a.key_hash is not null
),
first as materialized (
    select t.sink, t.key_hash, s.id as standing, s.state as standing_state, i.id as incoming
    from touched t
    left join tidegate.first_of_adopted_keys(
        $1, array(select t.sink from touched t), array(select t.key_hash from touched t), $6 || $7
    ) as s on s.sink = t.sink and s.key_hash = t.key_hash
    left join (
        select i.sink, i.key_hash, min(i.id) as id
        from incoming i
        where i.holds
        group by i.sink, i.key_hash
    ) i on i.sink = t.sink and i.key_hash = t.key_hash
),
promoted as (
    update tidegate.adopted_aside a
    set state = 'retry', due_at = now()
    where a.adopted = $1 and a.id = any (array(
        select f.standing
        from first f
        where f.standing_state = 'behind' and f.standing < coalesce(f.incoming, f.standing + 1)
    ))
),
demoted as (
    update tidegate.adopted_aside a
    set state = 'behind'
    where a.adopted = $1 and a.id = any (array(
        select f.standing from first f where f.standing_state = 'retry' and f.incoming < f.standing
    ))
),
placed as (
    insert into tidegate.adopted_aside as a
        (adopted, id, row_key, topic, key_hash, sink, state, attempts, reason, on_dead, due_at)
    select $1, i.id, i.row_key, i.topic, i.key_hash, i.sink,
        case
            when i.state not in ('retry', 'behind') then i.state
            when i.key_hash is null
                or f.incoming = i.id and i.id < coalesce(f.standing, i.id + 1) then 'retry'
            else 'behind'
        end,
        i.attempts, i.reason, i.on_dead, now() + i.delay_ms * interval '1 ms'
    from incoming i
    left join first f on f.sink = i.sink and f.key_hash = i.key_hash
    order by i.row_key
    on conflict (adopted, row_key) do update
    set sink = excluded.sink, state = excluded.state,
        reason = case when excluded.reason = '' then a.reason else excluded.reason end,
        on_dead = excluded.on_dead, due_at = excluded.due_at,
        attempts = greatest(a.attempts, excluded.attempts)
    -- The last settlement once more has nothing to add, and people may have decided since.
    where (select l.settled from lease l) <> $17
),
freed as materialized (
    select sink, key_hash from first where standing is null and incoming is null
)
select exists (select from held) as held,
    (select l.epoch from lease l) as epoch,
    (select l.settled from lease l) as settled,
    array(select sink from freed order by sink, key_hash) as freed_sinks,
    array(select key_hash from freed order by sink, key_hash) as freed_keys
from durable
