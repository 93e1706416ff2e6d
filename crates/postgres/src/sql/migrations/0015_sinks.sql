-- Sinks that take nothing from a relay at the moment. May be applied twice.

-- One row per relay and sink; written when a sink stops taking messages, and a few times a minute until it
-- takes them again.
create table if not exists tidegate.sink_trouble (
    outbox text not null,                           -- empty, or the name of an adopted table
    relay text not null,
    sink text not null,
    reason text not null,
    since timestamptz not null default clock_timestamp(),
    until timestamptz not null,                     -- the relay may have been killed
    primary key (outbox, relay, sink)
) with (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0
);

insert into tidegate.migration (version, name)
values (15, '0015_sinks')
on conflict (version) do nothing;
