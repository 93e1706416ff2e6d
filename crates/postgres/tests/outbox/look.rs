//! `tidegate.look` against the model of the simulator, in states that a server is in for microseconds.
//!
//! The function finds views of locks and of prepared transactions by the path, on which these tests have tables of
//! their own.

use super::support::{Database, POSTGRES};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use tidegate_sim::relay::database::{self, Lock, On, Owner, Step, Transaction};
use tokio_postgres::Client;

/// What the model has, and what must not matter: locks of others, on other tables, that are not granted or of another
/// mode; prepared transactions of another database.
const SHOW: &str = "
    truncate fake.pg_locks, fake.pg_prepared_xacts;
    insert into fake.pg_locks
    values
        ('relation', 'tidegate.message_1'::regclass, null, 'other/1', 'RowExclusiveLock', true, 1),
        ('relation', 'tidegate.message_1'::regclass, null, 'other/2', 'RowExclusiveLock', false, fake.this()),
        ('relation', 'tidegate.message_1'::regclass, null, 'other/3', 'AccessShareLock', true, fake.this()),
        ('relation', 'tidegate.lane'::regclass, null, 'other/4', 'RowExclusiveLock', true, fake.this()),
        ('transactionid', null, '4', 'other/5', 'ExclusiveLock', true, null),
        ('transactionid', null, '5', 'Session(1)', 'ShareLock', false, null);
    insert into fake.pg_prepared_xacts values ('6', 'another database');";

async fn fake(database: &Database) -> Client {
    let client = database.client().await;
    let tables = "
        create schema fake;
        create function fake.this() returns oid language sql stable
        return (select oid from pg_database where datname = current_database());
        create table fake.pg_locks (
            locktype text, relation oid, transactionid xid, virtualtransaction text, mode text, granted boolean,
            database oid
        );
        create table fake.pg_prepared_xacts (transaction xid, database name);
        set search_path = fake, pg_catalog";
    super::run(&client, tables).await;
    client
}

fn row(lock: &Lock) -> String {
    let Lock { owner, on, .. } = lock;
    match on {
        On::Table => {
            let table = match owner {
                Owner::Session(number) => number % 4,
                Owner::Prepared(number) => number.unsigned_abs() % 4,
            };
            format!(
                "('relation', 'tidegate.message_{table}'::regclass, null, '{owner:?}', 'RowExclusiveLock', true, \
                fake.this())"
            )
        }
        On::Number(number) => {
            let number = number + 100;
            format!("('transactionid', null, '{number}', '{owner:?}', 'ExclusiveLock', true, null)")
        }
    }
}

async fn look(client: &Client, locks: &[Lock], prepared: &[i64]) -> BTreeSet<i64> {
    let mut sql = SHOW.to_owned();
    for lock in locks {
        sql += &format!("insert into fake.pg_locks values {};", row(lock));
    }
    for number in prepared {
        let values = format!("('{}', current_database())", number + 100);
        sql += &format!("insert into fake.pg_prepared_xacts values {values};");
    }
    super::run(client, &sql).await;
    let sql = "select l.writers::text[]::bigint[] from tidegate.look(-1) as l";
    let writers: Vec<i64> = client.query_one(sql, &[]).await.unwrap().get(0);
    writers.iter().map(|number| number - 100).collect()
}

/// Whether a lock on a table can be seen without one on the number of its transaction.
fn is_torn(locks: &[Lock]) -> bool {
    let has_number = |owner| locks.iter().any(|it| it.owner == owner && it.on != On::Table);
    locks.iter().any(|lock| !has_number(lock.owner))
}

#[tokio::test]
async fn whoever_may_have_drawn_ids_is_found_while_transactions_are_prepared_or_end() {
    let database = Database::create(POSTGRES).await;
    let _store = database.store().await;
    let client = fake(&database).await;
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let mut model = database::Database::default();
    let mut under_way: Vec<(Transaction, Vec<Step>)> = Vec::new();
    let (mut torn, mut found_prepared) = (0, 0);
    for session in 0..300_u64 {
        let mut steps = database::steps(&mut rng, &[0, 1], None);
        steps.reverse();
        under_way.push((Transaction::new(session), steps));
        let mut act = |model: &mut database::Database, rng: &mut ChaCha8Rng| {
            let at = rng.random_range(0..under_way.len());
            if let Some(step) = under_way[at].1.pop() {
                under_way[at].0.step(model, step);
            } else if under_way.len() > 1 {
                under_way.swap_remove(at);
            }
        };
        (0..10).for_each(|_| act(&mut model, &mut rng));
        let locks: Vec<Lock> = model.locks().collect();
        (0..rng.random_range(0..3)).for_each(|_| act(&mut model, &mut rng));
        let prepared: Vec<i64> = model.prepared().collect();
        let expected = database::writers(&locks, &prepared);
        let found = look(&client, &locks, &prepared).await;
        assert_eq!(found, expected, "{locks:?} {prepared:?}");
        torn += usize::from(is_torn(&locks));
        found_prepared += usize::from(expected != database::writers(&locks, &[]));
    }
    assert!(torn > 30 && found_prepared > 5, "{torn} {found_prepared}: the test proves little");
}
