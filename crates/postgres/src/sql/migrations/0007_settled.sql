-- Copies of settlements that arrive late change nothing. May be applied twice.

-- The number of the last settlement under the present fence.
alter table tidegate.lane add column if not exists settled bigint not null default 0;
alter table tidegate.adopted add column if not exists settled bigint not null default 0;

insert into tidegate.migration (version, name)
values (7, '0007_settled')
on conflict (version) do nothing;
