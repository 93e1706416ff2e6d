-- Reads messages from lanes, oldest first across topics and lanes, and those that were set aside and are due.
-- Changes no row. Rows come in no order; `kind` tells what a row is:
--   seen    one row: what this statement could see, and, as `published_at`, when; which segments are `retiring`
--   window  one row per reader: in each of its lanes, `id` is how far this statement has read
--   lane    a message from a lane, for the reader `n`
--   due     a message that was set aside; or, without an id, when the next of them is due
--
-- Indexes: by id of each segment. What was set aside is read by a function, so that this statement, which is
-- planned each time, stays small.
--
-- Only ids up to the horizon are read: the highest of the marks in $7 that none of the transactions in $8 holds back.
-- Each of these holds back the mark in $18 and all later ones for as long as it is open. No message with a lower id
-- can still commit then. If ids were drawn beyond $9, the answer tells up to which, and which transactions may have
-- drawn them (see horizon.rs).
--
-- A reader looks at a window of ids that begins with the oldest message behind its lanes: that is as good as
-- a limit, and nothing has to be sorted. The oldest is looked for segment by segment: of all together,
-- the planner may read whatever waits, and sort it.
--
-- Segments that are retiring can be left out (migrations/0022_retention_beside_claims.sql): claim.rs writes the empty
-- `only tidegate.message` for them. What is left out stands in $19, and nothing is read from lanes if one of these is not
-- retiring after all. No other table of messages may be named here: what a statement names it locks.
--
-- readers: $1 number, $2 and $3 regular expressions for topics to take and to leave, $4 length of the
-- window in ids, $5 where the first of its lanes stands; $6 for each reader and each of the 64 lanes, where it
-- stands, or null; $7 marks; $8 and $18 transactions that hold marks back; $9 the last id that has a mark; set aside: $10 lanes, $11 ids under way,
-- $12 sinks that take no more, $13 most heads, $14 most behind a head, $15 most bytes, $16 since when they may be
-- due (see aside.rs); $17 the length of the longest window
with snapshot as materialized (
    select pg_current_snapshot() as now
),
open_writer as materialized (
    select w.xid, w.mark
    from unnest($8, $18) as w (xid, mark)
    cross join snapshot s
    where not pg_visible_in_snapshot(w.xid::text::xid8, s.now)
),
horizon as materialized (
    select coalesce(max(m.id), 0) as id
    from unnest($7) as m (id)
    where m.id < coalesce((select min(w.mark) from open_writer w), m.id + 1)
),
seen as materialized (
    select l.last_id, l.writers::text::bigint[] as writers, tidegate.current_epoch() as epoch,
        array(select w.xid from open_writer w) as open_writers, tidegate.retiring() as retiring
    from tidegate.look($9) as l
),
span as materialized (
    select r.n, r.takes, r.leaves, f.lo, least(f.lo + r.length - 1, z.id) as hi
    from unnest($1, $2, $3, $4, $5) as r (n, takes, leaves, length, after)
    cross join horizon z
    join seen s on s.retiring @> $19
    cross join lateral (
        select min(f.id) as lo
        from (
            (select m.id from tidegate.message_0 m where m.id > r.after and m.id <= z.id order by m.id limit 1)
            union all
            (select m.id from tidegate.message_1 m where m.id > r.after and m.id <= z.id order by m.id limit 1)
            union all
            (select m.id from tidegate.message_2 m where m.id > r.after and m.id <= z.id order by m.id limit 1)
            union all
            (select m.id from tidegate.message_3 m where m.id > r.after and m.id <= z.id order by m.id limit 1)
        ) f
    ) f
)
select 'seen' as kind, null::integer as n, h.id, null::smallint as lane, null as topic, null as key,
    null::bytea as payload, null as headers, now() as published_at,
    null::double precision as due_seconds, null::integer as attempts, null as sink, null as state,
    s.last_id, s.writers, s.open_writers, s.epoch, s.retiring
from seen s
cross join horizon h
union all
select 'window', r.n, r.hi, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
from span r
union all
select 'due', null, d.id, d.lane, d.topic, d.key, d.payload, d.headers, d.published_at, d.due_seconds, d.attempts,
    d.sink, d.state, null, null, null, null, null
from tidegate.due($10, $11, $12, $13, $14, $15, coalesce($16, '-infinity')) as d
union all
select 'lane', r.n, m.id, m.lane, m.topic, m.key, m.payload, m.headers::text,
    m.published_at,
    case when m.not_before > now()
        then extract(epoch from least(m.not_before, now() + interval '100 years') - now())::double precision
    end,
    null, null, null, null, null, null, null, null
from span r
cross join lateral (
    select m.*, tidegate.lane_of(m.key, m.id) as lane
    from (
        -- No window has more ids: the limit cuts nothing off, and tells the planner how little is read.
        select m.*
        from (
            select id, published_at, not_before, topic, key, payload, headers from tidegate.message_0
            union all
            select id, published_at, not_before, topic, key, payload, headers from tidegate.message_1
            union all
            select id, published_at, not_before, topic, key, payload, headers from tidegate.message_2
            union all
            select id, published_at, not_before, topic, key, payload, headers from tidegate.message_3
        ) m
        where m.id >= r.lo and m.id <= r.hi
        limit $17
    ) m
    where (r.takes is null or m.topic ~ r.takes) and (r.leaves is null or m.topic !~ r.leaves)
) m
where m.id > $6[64 * r.n + m.lane + 1]
