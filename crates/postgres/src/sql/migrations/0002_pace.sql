-- What workers know about the pace of the sinks they deliver to. May be applied twice.

-- One row per worker and batch, written over about once a second while it delivers.
create table if not exists tidegate.pace (
    batch_id bigint not null,
    worker text not null,
    sink text not null,
    body text not null,                             -- JSON
    updated_at timestamptz not null default clock_timestamp(),
    primary key (batch_id, worker)
) with (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0,
    toast.autovacuum_vacuum_threshold = 5000,
    toast.autovacuum_vacuum_scale_factor = 0
);

create index if not exists pace_recent on tidegate.pace (updated_at);

insert into tidegate.migration (version, name)
values (2, '0002_pace')
on conflict (version) do nothing;
