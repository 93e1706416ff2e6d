-- Which batch a load is. May be applied twice.

create index if not exists batch_workload on tidegate.batch (workload, id);

insert into tidegate.migration (version, name)
values (3, '0003_loads')
on conflict (version) do nothing;
