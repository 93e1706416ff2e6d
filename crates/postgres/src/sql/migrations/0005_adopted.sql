-- Outbox tables that people already have: what must be remembered about them. May be applied twice.

-- One row per adopted table: who relays it.
create table if not exists tidegate.adopted (
    adopted text primary key,                       -- schema and table, as SQL writes them
    fence bigint not null,
    relay text,
    expires_at timestamptz not null,
    last_id bigint not null default 0,              -- ids up to here were given to messages
    disturbed boolean not null default false        -- somebody changed what was set aside
) with (
    fillfactor = 10,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0
);

-- A row of an adopted table that is not simply done. The row itself stays where it is.
create table if not exists tidegate.adopted_aside (
    adopted text not null,
    id bigint not null,
    row_key text not null,
    topic text not null,
    key_hash bigint,
    sink text not null,
    state text not null check (state in ('retry', 'behind', 'later', 'unrouted', 'dead')),
    attempts integer not null,
    reason text not null,
    on_dead text not null check (on_dead in ('skip', 'block', 'park')),
    due_at timestamptz not null,
    primary key (adopted, row_key)
) with (fillfactor = 80);

create unique index if not exists adopted_aside_id on tidegate.adopted_aside (adopted, id);
create index if not exists adopted_aside_due on tidegate.adopted_aside (adopted, due_at)
    where state in ('retry', 'later');
-- Of a key, what holds back the rest.
create index if not exists adopted_aside_key on tidegate.adopted_aside (adopted, sink, key_hash, id)
    where key_hash is not null and (state in ('retry', 'behind') or on_dead <> 'skip');
create index if not exists adopted_aside_dead on tidegate.adopted_aside (adopted, id)
    where state = 'dead';

-- Who changed what was set aside, and why.
create table if not exists tidegate.adopted_audit (
    adopted text not null,
    at timestamptz not null default now(),
    who text not null,
    what text not null,
    messages bigint not null,
    why text not null
);

-- Whether a row of an adopted table was set aside: one look into the primary key. As a function with a
-- price of its own it stays a filter: the planner neither joins nor compiles because of it.
create or replace function tidegate.is_set_aside(adopted text, row_key text)
returns boolean
language plpgsql
stable
cost 10
as $$
begin
    return exists (
        select
        from tidegate.adopted_aside a
        where a.adopted = is_set_aside.adopted and a.row_key = is_set_aside.row_key
    );
end
$$;

insert into tidegate.migration (version, name)
values (5, '0005_adopted')
on conflict (version) do nothing;
