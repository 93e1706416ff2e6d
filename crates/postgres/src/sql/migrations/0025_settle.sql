-- A settlement finds the first of each key by its index, whatever the statistics say. May be applied twice.

-- The first messages that hold keys, leaving some messages out. Keys for which there is none are not returned.
--
-- Index: aside_key. By their statistics, another index may seem to lead to a key's first message as soon, and read all
-- that was set aside in its lane: the order is one that only this index has.
create or replace function tidegate.first_of_keys(
    of_lanes smallint[], of_sinks text[], of_keys bigint[], but bigint[]
)
returns table (lane smallint, sink text, key_hash bigint, id bigint, state text)
language plpgsql
stable
rows 100
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query
    select k.lane, k.sink, k.key_hash, f.id, f.state
    from unnest(of_lanes, of_sinks, of_keys) as k (lane, sink, key_hash)
    cross join lateral (
        select a.id, a.state
        from tidegate.aside a
        where a.lane = k.lane and a.sink = k.sink and a.key_hash between k.key_hash and k.key_hash
            and a.key_hash is not null and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
            and a.id not in (select unnest(but))
        order by a.key_hash, a.id
        limit 1
    ) f;
end
$$;

insert into tidegate.migration (version, name)
values (25, '0025_settle')
on conflict (version) do nothing;
