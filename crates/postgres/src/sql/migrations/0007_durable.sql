-- What late copies of settlements and crashes of the server could do. May be applied twice.

-- The number of the last settlement under the present fence.
alter table tidegate.lane add column if not exists settled bigint not null default 0;
alter table tidegate.adopted add column if not exists settled bigint not null default 0;

-- Counts nothing: to set it is to write to the log, and so to wait for all that was written before.
create sequence if not exists tidegate.flushed;

insert into tidegate.migration (version, name)
values (7, '0007_durable')
on conflict (version) do nothing;
