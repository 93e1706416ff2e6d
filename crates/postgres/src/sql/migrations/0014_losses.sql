-- How often work was lost with its worker, so that a run that ends its process is found and given up; and
-- the dead runs of a batch by index, so that a page of them is found at once. May be applied twice.

-- `tries` counts the leases that ended neither by settling nor by giving back, the present one included;
-- `lost` is the fence of the last one that was lost. A suspect is part of a range that was lost twice.
alter table tidegate.lease
    add column if not exists tries integer not null default 1,
    add column if not exists lost bigint,
    add column if not exists suspect boolean not null default false;

alter table tidegate.exception
    add column if not exists tries integer not null default 0,
    add column if not exists lost bigint;

create index if not exists exception_dead on tidegate.exception (batch_id, index)
    where state = 'dead';

-- Retries that are leased one by one, and those that are leased so at present.
create index if not exists exception_suspect on tidegate.exception (batch_id, index)
    where state = 'retry' and tries >= 2;
create index if not exists exception_alone on tidegate.exception (worker)
    where state = 'retry' and fence is not null and tries > 2;

insert into tidegate.migration (version, name)
values (14, '0014_losses')
on conflict (version) do nothing;
