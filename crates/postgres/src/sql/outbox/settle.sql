-- Moves lanes on, and writes what was set aside, for those lanes whose fence still holds, unless
-- a later settlement of their relay is stored. Fails if the store is not where the relay left it. What somebody dropped meanwhile is not set aside again. Returns the
-- lanes that it moved, and the keys for which nothing that holds them is left.
--
-- Of every key that it touches, the first that waits becomes due, unless one before it holds the key; all
-- others wait behind it.
-- All parts of a statement see the table as it was before: the first of a key is the lower one of what
-- stays and what comes in.
--
-- Indexes: the primary keys; aside_key and aside_id; that by id of each segment for what is set aside. A segment that
-- is about to be truncated is not looked at: what is set aside again of its messages is in aside.
--
-- lanes: $1 lane, $2 fence, $3 cursor, $4 what that does not tell; set aside: $5 lane, $6 id, $7 topic, $8 key,
-- $9 sink, $10 state, $11 attempts, $12 reason, $13 what its death means, $14 delay in ms; $15 ids of those that
-- were set aside and are done; $16 number of the settlement; $17 epoch
with held as materialized (
    select unnest(tidegate.advance($17, $1, $2, $3, $4, $16)) as lane
),
gone as (
    delete from tidegate.aside a
    where a.id = any ($15) and a.lane = any (array(select lane from held))
    returning a.lane, a.sink, a.key_hash
),
stored as materialized (
    select s.id from tidegate.stored($6) s
),
incoming as materialized (
    select i.*, (i.state in ('retry', 'behind') or i.on_dead <> 'skip') as holds
    from unnest($5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        as i (lane, id, topic, key_hash, sink, state, attempts, reason, on_dead, delay_ms)
    join held h on h.lane = i.lane
    where exists (select from stored s where s.id = i.id)
        or exists (select from tidegate.aside a where a.lane = i.lane and a.id = i.id)
),
touched as materialized (
    select lane, sink, key_hash from gone where key_hash is not null
    union
    select lane, sink, key_hash from incoming where key_hash is not null
    union
    -- What goes to another sink now leaves the line that it was in.
    select a.lane, a.sink, a.key_hash
    from tidegate.aside a
    where a.id = any (array(select id from incoming)) and a.key_hash is not null
),
first as materialized (
    select t.lane, t.sink, t.key_hash, s.id as standing, s.state as standing_state, i.id as incoming
    from touched t
    left join tidegate.first_of_keys(
        array(select t.lane from touched t), array(select t.sink from touched t),
        array(select t.key_hash from touched t), $15 || $6
    ) as s on s.lane = t.lane and s.sink = t.sink and s.key_hash = t.key_hash
    left join (
        select i.lane, i.sink, i.key_hash, min(i.id) as id
        from incoming i
        where i.holds
        group by i.lane, i.sink, i.key_hash
    ) i on i.lane = t.lane and i.sink = t.sink and i.key_hash = t.key_hash
),
promoted as (
    update tidegate.aside a
    set state = 'retry', due_at = now()
    where a.id = any (array(
        select f.standing
        from first f
        where f.standing_state = 'behind' and f.standing < coalesce(f.incoming, f.standing + 1)
    ))
),
demoted as (
    update tidegate.aside a
    set state = 'behind'
    where a.id = any (array(
        select f.standing from first f where f.standing_state = 'retry' and f.incoming < f.standing
    ))
),
placed as (
    insert into tidegate.aside as a
        (lane, id, topic, key_hash, sink, state, attempts, reason, on_dead, due_at)
    select i.lane, i.id, i.topic, i.key_hash, i.sink,
        case
            when i.state not in ('retry', 'behind') then i.state
            when i.key_hash is null
                or f.incoming = i.id and i.id < coalesce(f.standing, i.id + 1) then 'retry'
            else 'behind'
        end,
        i.attempts, i.reason, i.on_dead, now() + i.delay_ms * interval '1 ms'
    from incoming i
    left join first f on f.lane = i.lane and f.sink = i.sink and f.key_hash = i.key_hash
    order by i.lane, i.id
    on conflict (lane, id) do update
    set sink = excluded.sink, state = excluded.state,
        reason = case when excluded.reason = '' then a.reason else excluded.reason end,
        on_dead = excluded.on_dead, due_at = excluded.due_at,
        attempts = greatest(a.attempts, excluded.attempts)
),
freed as materialized (
    select lane, sink, key_hash from first where standing is null and incoming is null
)
select array(select lane from held) as held,
    array(select lane from freed order by lane, sink, key_hash) as freed_lanes,
    array(select sink from freed order by lane, sink, key_hash) as freed_sinks,
    array(select key_hash from freed order by lane, sink, key_hash) as freed_keys
from (select) as one
