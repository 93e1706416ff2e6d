-- What late copies of settlements, crashes of the server and operators could do to a lane. May be applied
-- twice.

-- The number of the last settlement under the present fence.
alter table tidegate.lane add column if not exists settled bigint not null default 0;
alter table tidegate.adopted add column if not exists settled bigint not null default 0;

-- Counts nothing: to set it is to write to the log, and so to wait for all that was written before.
create sequence if not exists tidegate.flushed;

-- Makes the first that waits of every key in some lanes due, unless one before it holds the key; all
-- others wait behind it.
-- Whoever disturbs a lane locks it: what was changed before is seen here, what comes later disturbs it
-- again. Only its relay calms it: a settlement that has begun before may not have seen the change.
--
-- Indexes: the primary key of lane; aside_key, aside_due.
create or replace function tidegate.tend(lanes smallint[], calm boolean)
returns void
language plpgsql
as $$
begin
    perform from tidegate.lane l where l.lane = any (lanes) order by l.lane for update;
    update tidegate.lane l set disturbed = false where calm and l.lane = any (lanes) and l.disturbed;
    update tidegate.aside a
    set state = 'retry', due_at = now()
    from (
        select distinct on (f.lane, f.sink, f.key_hash) f.lane, f.id, f.state
        from tidegate.aside f
        where f.lane = any (lanes) and f.key_hash is not null
            and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
        order by f.lane, f.sink, f.key_hash, f.id
    ) f
    where f.state = 'behind' and a.lane = f.lane and a.id = f.id and a.state = 'behind';
    update tidegate.aside a
    set state = 'behind'
    where a.lane = any (lanes) and a.state = 'retry' and a.key_hash is not null and exists (
        select
        from tidegate.aside f
        where f.lane = a.lane and f.sink = a.sink and f.key_hash = a.key_hash and f.id < a.id
            and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
    );
end
$$;

-- The same for an adopted table.
--
-- Indexes: the primary key of adopted; adopted_aside_key, adopted_aside_due.
create or replace function tidegate.tend_adopted(which text, calm boolean)
returns void
language plpgsql
as $$
begin
    perform from tidegate.adopted l where l.adopted = which for update;
    update tidegate.adopted l set disturbed = false where calm and l.adopted = which;
    update tidegate.adopted_aside a
    set state = 'retry', due_at = now()
    from (
        select distinct on (f.sink, f.key_hash) f.row_key, f.state
        from tidegate.adopted_aside f
        where f.adopted = which and f.key_hash is not null
            and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
        order by f.sink, f.key_hash, f.id
    ) f
    where f.state = 'behind' and a.adopted = which and a.row_key = f.row_key
        and a.state = 'behind';
    update tidegate.adopted_aside a
    set state = 'behind'
    where a.adopted = which and a.state = 'retry' and a.key_hash is not null and exists (
        select
        from tidegate.adopted_aside f
        where f.adopted = which and f.sink = a.sink and f.key_hash = a.key_hash and f.id < a.id
            and (f.state in ('retry', 'behind') or f.on_dead <> 'skip')
    );
end
$$;

insert into tidegate.migration (version, name)
values (7, '0007_durable')
on conflict (version) do nothing;
