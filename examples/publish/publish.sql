-- Messages in the same transaction as the data, with psql:
--
--   psql postgres://user@host/db -f examples/publish/publish.sql

\set ON_ERROR_STOP on

create table if not exists orders (
    number bigint generated always as identity primary key,
    item text not null,
    shipped boolean not null default false
);

-- An order and its message: both are there after the commit, or neither.
begin;
insert into orders (item) values ('tea') returning number as tea \gset
select tidegate.publish(
    'orders.created', :'tea',
    jsonb_build_object('number', :tea, 'item', 'tea'),
    '{"ce-source": "/shop"}');
commit;

begin;
insert into orders (item) values ('coffee') returning number as coffee \gset
select tidegate.publish(
    'orders.created', :'coffee',
    jsonb_build_object('number', :coffee, 'item', 'coffee'),
    '{"ce-source": "/shop"}');
commit;

-- Several messages in one statement, in the order of the arrays.
begin;
update orders set shipped = true where number in (:tea, :coffee);
select tidegate.publish_many(
    array['orders.shipped', 'orders.shipped'],
    array[:'tea', :'coffee'],
    array[jsonb_build_object('number', :tea), jsonb_build_object('number', :coffee)]);
commit;

-- Rolled back: no order, no message.
begin;
insert into orders (item) values ('milk') returning number as milk \gset
select tidegate.publish('orders.created', :'milk', '{"item": "milk"}');
rollback;

-- Refused: the transaction has failed, and its commit is a rollback.
\set ON_ERROR_STOP off
begin;
insert into orders (item) values ('sugar');
select tidegate.publish('orders.*', null, '{"item": "sugar"}');
\echo refused with :SQLSTATE: :LAST_ERROR_MESSAGE
commit;
