//! Lanes that are taken over with much that was set aside: read in pages, over as many shares as it takes.

use super::*;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::BTreeSet;
use tidegate_core::outbox::{Pattern, Route};

/// So short that a share reads few pages.
const SHORT: Duration = Duration::from_millis(6);

/// What a relay knows.
#[derive(Default)]
struct Known {
    epoch: Epoch,
    lanes: Vec<Gained>,
}

impl Known {
    /// Learns what a share has changed. Returns how many lanes it does not know yet.
    fn learn(&mut self, shared: Shared) -> usize {
        self.epoch = shared.epoch;
        self.lanes.retain(|it| !shared.lost.contains(&it.lease.lane));
        self.lanes.extend(shared.gained);
        shared.pending
    }
}

async fn share(store: &Postgres, relay: &str, known: &Known, lease: Duration) -> Shared {
    let held = known.lanes.iter().map(|gained| gained.lease).collect();
    let routes = vec![Route { topics: Pattern("t".to_owned()), sink: "s".to_owned() }];
    let relay = WorkerId(relay.to_owned());
    let epoch = known.epoch.clone();
    store.share_lanes(Share { relay, epoch, held, routes, lease }).await.unwrap()
}

/// Messages that were set aside for any reason, of many keys, before and beyond cursors, for a sink that is gone.
async fn set_aside(database: &Database, many: usize, seed: u64) {
    database
        .execute(&format!(
            "select setseed({seed} / 1000.0);
            insert into tidegate.message_0 (id, topic, key, payload)
                select n, 't', case when random() < 0.9 then 'k' || (random() * 3000)::int end, '{{}}'
                from generate_series(1, {many}) as n;
            select setval('tidegate.message_id', {many});
            insert into tidegate.aside
                (lane, id, topic, key_hash, sink, state, attempts, reason, on_dead, due_at)
                select tidegate.lane_of(m.key, m.id), m.id, 't', hashtextextended(m.key, 7),
                    (array['s', 'gone'])[1 + (random() * 1.2)::int],
                    (array['dead', 'retry', 'behind', 'later', 'unrouted'])[1 + (random() * 4)::int],
                    1, 'bad luck', (array['skip', 'park'])[1 + (random() * 1.1)::int], now()
                from tidegate.message_0 m;
            update tidegate.lane set cursor = lane * {many} / 64"
        ))
        .await;
}

#[tokio::test]
async fn everything_that_was_set_aside_is_learned_page_by_page() {
    for seed in [1, 2] {
        let database = Database::create(POSTGRES).await;
        let store = database.store().await;
        set_aside(&database, 30_000, seed).await;
        let (mut known, mut shares, mut pending) = (Known::default(), 0, 65);
        while pending > 0 {
            let before = store.statements();
            let shared = share(&store, "a", &known, SHORT).await;
            assert!(store.statements() - before <= 20, "a share reads few pages");
            assert!(shared.pending < pending || shares < 1_000, "{shared:?}");
            assert_eq!(shared.lost, []);
            pending = known.learn(shared);
            assert_eq!(known.lanes.len() + pending, 64);
            shares += 1;
        }
        let gained = known.lanes;
        assert!(shares > 2, "{shares}");
        let held: BTreeSet<[String; 3]> = gained
            .iter()
            .flat_map(|it| &it.held)
            .map(|it| [it.lane.0.to_string(), it.sink.clone(), it.key.0.to_string()])
            .collect();
        assert_eq!(held.len(), gained.iter().map(|it| it.held.len()).sum::<usize>(), "once each");
        let holds = "select distinct lane, sink, key_hash from tidegate.aside
            where key_hash is not null and (state in ('retry', 'behind') or on_dead <> 'skip')";
        let stored = database.rows(holds).await.into_iter().map(|row| row.try_into().unwrap());
        assert!(held == stored.collect::<BTreeSet<_>>(), "seed {seed}");
        let beyond: BTreeSet<[String; 2]> = gained
            .iter()
            .flat_map(|it| it.aside.iter().map(|id| [it.lease.lane.0.to_string(), id.to_string()]))
            .collect();
        let stored = "select a.lane, a.id from tidegate.aside a join tidegate.lane l using (lane)
            where a.id > l.cursor";
        let stored = database.rows(stored).await.into_iter().map(|row| row.try_into().unwrap());
        assert!(beyond == stored.collect::<BTreeSet<_>>(), "seed {seed}");
        // Whatever it was before: of each key one is due, unless it is parked, and all have the sink of their route.
        let disorder = "select count(*) from (
                select a.*, row_number() over (partition by a.lane, a.sink, a.key_hash order by a.id) as place
                from tidegate.aside a
                where a.key_hash is not null and (a.state in ('retry', 'behind') or a.on_dead <> 'skip')
            ) a
            where a.state in ('retry', 'behind') and (a.state = 'retry') <> (a.place = 1)
                or a.sink <> 's' and (a.state <> 'dead' or a.on_dead <> 'skip')";
        assert_eq!(database.rows(disorder).await.concat(), ["0"], "seed {seed}");
    }
}

/// Lanes that change hands, and stores that go back, amid all that: every lane ends with one relay that knows it.
#[tokio::test]
async fn lanes_that_are_lost_meanwhile_are_learned_by_others() {
    let mut random = StdRng::seed_from_u64(17);
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    set_aside(&database, 20_000, 3).await;
    let relays = ["a", "b", "c"];
    let mut known: [Known; 3] = Default::default();
    for _ in 0..40 {
        let one = random.random_range(0..3);
        let lease = if random.random_bool(0.8) { SHORT } else { LEASE };
        let shared = share(&store, relays[one], &known[one], lease).await;
        known[one].learn(shared);
        match random.random_range(0..20) {
            0 => database.execute("delete from tidegate.epoch").await,
            1 => database.execute("delete from tidegate.relay").await,
            // A relay that begins anew under its name knows nothing.
            2 => known[one] = Known::default(),
            _ => {}
        }
    }
    // The others are gone: one gets all lanes, and knows what the store knows.
    database.execute("update tidegate.relay set expires_at = now() - interval '1 s'").await;
    let mut a = std::mem::take(&mut known[0]);
    while a.lanes.len() < 64 {
        let shared = share(&store, "a", &a, LEASE).await;
        a.learn(shared);
    }
    let mut all = a.lanes;
    let stored = "select lane, fence from tidegate.lane where relay = 'a' order by lane";
    all.sort_by_key(|gained| gained.lease.lane);
    let known: Vec<[String; 2]> =
        all.iter().map(|it| [it.lease.lane.0.to_string(), it.lease.fence.0.to_string()]).collect();
    assert_eq!(database.rows(stored).await, known);
    let held: usize = all.iter().map(|it| it.held.len()).sum();
    let holds = "select count(*) from (
            select distinct lane, sink, key_hash from tidegate.aside
            where key_hash is not null and (state in ('retry', 'behind') or on_dead <> 'skip')) k";
    assert_eq!(database.rows(holds).await.concat(), [held.to_string()]);
}
