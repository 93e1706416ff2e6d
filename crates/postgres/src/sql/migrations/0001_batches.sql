-- Batches, their leases, exceptions, results and aggregates. May be applied twice.
--
-- No foreign keys between these tables: each would lock and read a parent row on every settlement.

create schema if not exists tidegate;

create table if not exists tidegate.migration (
    version bigint primary key,
    name text not null,
    applied_at timestamptz not null default now()
);

-- Grows with every lease. 0 is the fence that nobody holds.
create sequence if not exists tidegate.fence as bigint minvalue 1;

-- The input that all runs of a batch share, addressed by the BLAKE3 hash of its text.
create table if not exists tidegate.snapshot (
    hash bytea primary key,
    body text not null
);

-- One row per batch, whatever its number of runs.
create table if not exists tidegate.batch (
    id bigint generated always as identity primary key,
    workload text not null,
    snapshot bytea not null,
    seed bigint not null,                           -- the bits of an unsigned number
    runs bigint not null check (runs > 0),
    keep text not null,
    max_attempts integer not null,
    backoff_ms bigint not null,
    backoff_cap_ms bigint not null,
    timeout_ms bigint,
    state text not null default 'running'
        check (state in ('running', 'completed', 'completed_with_failures', 'cancelled')),
    cursor bigint not null default 0,               -- the first index never leased
    reopened bigint not null default 0,             -- how often its dead runs were retried
    created_at timestamptz not null default now(),
    finished_at timestamptz,
    digest text,
    aggregates jsonb,
    check (cursor between 0 and runs)
) with (fillfactor = 50);

create index if not exists batch_running on tidegate.batch (id) where state = 'running';

-- One row per leased range: as many as there are threads at work. `hi` never changes; `lo` moves up
-- as runs are settled. Nothing but the key is indexed, so that updates stay within their page.
create table if not exists tidegate.lease (
    batch_id bigint not null,
    hi bigint not null,
    lo bigint not null,
    fence bigint not null,
    worker text not null,
    expires_at timestamptz not null,
    primary key (batch_id, hi),
    check (lo < hi)
) with (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_analyze_threshold = 500,
    autovacuum_analyze_scale_factor = 0
);

-- A run that is not simply done. `due_at` is when it may be claimed: its due time, or the expiry of
-- its lease while `fence` is set.
create table if not exists tidegate.exception (
    batch_id bigint not null,
    index bigint not null,
    attempts integer not null,
    state text not null check (state in ('retry', 'dead')),
    reason text not null,
    due_at timestamptz not null,
    fence bigint,
    worker text,
    primary key (batch_id, index)
) with (fillfactor = 80);

create index if not exists exception_due on tidegate.exception (batch_id, due_at)
    where state = 'retry';
create index if not exists exception_leased on tidegate.exception (batch_id, fence)
    where fence is not null;

-- The results of one settlement of a lease: the text of one JSON array. Append only.
create table if not exists tidegate.page (
    batch_id bigint not null,
    lo bigint not null,
    hi bigint not null,
    indexes bigint[],                               -- null: one result for each of [lo, hi)
    results text not null,
    primary key (batch_id, lo)
);

-- What one worker has added up over all it settled of a batch.
create table if not exists tidegate.part (
    batch_id bigint not null,
    accumulator bigint not null,
    sequence bigint not null,
    body bytea not null,
    primary key (batch_id, accumulator)
) with (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0,
    toast.autovacuum_vacuum_threshold = 5000,
    toast.autovacuum_vacuum_scale_factor = 0
);

-- LZ4 is several times faster than the default; a server may be built without it.
do $$
begin
    alter table tidegate.page alter column results set compression lz4;
    alter table tidegate.part alter column body set compression lz4;
    alter table tidegate.snapshot alter column body set compression lz4;
exception
    when feature_not_supported then null;
end
$$;

-- One row per kept result, whatever the encoding of its page.
create or replace view tidegate.results (batch_id, index, result) as
select p.batch_id, coalesce(p.indexes[r.n], p.lo + r.n - 1), r.result
from tidegate.page p
cross join lateral json_array_elements(p.results::json) with ordinality as r (result, n);

insert into tidegate.migration (version, name)
values (1, '0001_batches')
on conflict (version) do nothing;
