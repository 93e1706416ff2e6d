use super::*;
use proptest::prelude::*;

fn relay(beat: i64) -> Relay {
    Relay { beat, lease: Duration::from_secs(15), at_ms: 7 }
}

fn lease(lane: u16, fence: i64) -> LaneLease {
    LaneLease { lane: Lane(lane), fence: Fence(fence) }
}

/// Carries out a plan as the item would be changed.
fn carry_out(leases: &mut Leases, name: &str, plan: &Plan) -> Vec<LaneLease> {
    leases.relays.retain(|name, _| !plan.gone.contains(name));
    let mut taken = Vec::new();
    for lane in &plan.take {
        leases.last_fence += 1;
        let fence = Fence(leases.last_fence);
        leases.lanes.insert(*lane, Held { relay: name.to_owned(), fence });
        taken.push(LaneLease { lane: *lane, fence });
    }
    for lane in &plan.free {
        leases.lanes.insert(*lane, Held { relay: String::new(), fence: Fence::NOBODY });
    }
    taken
}

#[test]
fn what_is_written_is_read() {
    let mut leases = Leases::read(&Leases::first("e")).unwrap();
    assert_eq!(leases.epoch, Epoch("e".to_owned()));
    leases.relays.insert("a".to_owned(), relay(3));
    leases.lanes.insert(Lane(63), Held { relay: "a".to_owned(), fence: Fence(9) });
    let mut item = Leases::first("e");
    let relays = Item::from([("a".to_owned(), relay(3).value())]);
    item.insert("Relays".to_owned(), AttributeValue::M(relays));
    let lanes = Item::from([(name_of(Lane(63)), leases.lanes[&Lane(63)].value())]);
    item.insert("Lanes".to_owned(), AttributeValue::M(lanes));
    assert_eq!(Leases::read(&item), Some(leases));
}

#[test]
fn an_item_that_is_something_else_is_not_read() {
    for name in ["Epoch", "Version", "Relays", "Lanes"] {
        let mut item = Leases::first("e");
        item.insert(name.to_owned(), AttributeValue::Bool(true));
        assert_eq!(Leases::read(&item), None, "{name}");
    }
}

#[test]
fn a_lane_with_another_fence_is_lost() {
    let mut leases = Leases::default();
    leases.relays.insert("a".to_owned(), relay(1));
    leases.lanes.insert(Lane(0), Held { relay: "a".to_owned(), fence: Fence(5) });
    leases.lanes.insert(Lane(1), Held { relay: "b".to_owned(), fence: Fence(6) });
    let plan = leases.plan("a", &[lease(0, 4), lease(1, 6)], &BTreeSet::new());
    assert_eq!(plan.lost, [Lane(0), Lane(1)]);
    assert!(
        plan.take.contains(&Lane(0)) && plan.take.contains(&Lane(1)),
        "nobody lives who has them"
    );
}

/// The answer that gave it lanes was lost, and it needs only some of them: others must be able to get the rest.
#[test]
fn lanes_that_a_relay_has_without_knowing_are_free() {
    let mut leases = Leases::default();
    leases.relays.insert("a".to_owned(), relay(1));
    let plan = leases.plan("a", &[], &BTreeSet::new());
    carry_out(&mut leases, "a", &plan);
    leases.relays.insert("b".to_owned(), relay(1));
    let plan = leases.plan("a", &[], &BTreeSet::new());
    let taken = carry_out(&mut leases, "a", &plan);
    assert_eq!((taken.len(), plan.free.len()), (32, 32));
    let again = leases.plan("a", &taken, &BTreeSet::new());
    assert!(again.changes_nothing(), "{again:?}");
    assert_eq!(leases.plan("b", &[], &BTreeSet::new()).take, plan.free);
}

proptest! {
    /// Relays come, go without a word, and ask in any order. Nobody ever takes a lane that a living relay has, and
    /// when all have asked often enough, every lane is held and the shares are even.
    #[test]
    fn lanes_end_up_with_those_who_live(steps in prop::collection::vec((0..5_usize, 0..10_u8), 1..60)) {
        let mut leases = Leases::default();
        let mut held: BTreeMap<String, Vec<LaneLease>> = BTreeMap::new();
        let mut gone: BTreeSet<String> = BTreeSet::new();
        let mut lives = 0;
        let ask = |leases: &mut Leases, held: &mut BTreeMap<String, Vec<LaneLease>>, gone: &BTreeSet<String>, name: &str| {
            leases.relays.insert(name.to_owned(), relay(1));
            let mine = held.entry(name.to_owned()).or_default();
            let plan = leases.plan(name, mine, gone);
            for lane in &plan.take {
                if let Some(owner) = leases.lanes.get(lane) {
                    assert!(owner.relay == name || owner.relay.is_empty() || gone.contains(&owner.relay)
                        || !leases.relays.contains_key(&owner.relay), "{lane:?} is taken from {}", owner.relay);
                }
            }
            mine.retain(|lease| !plan.lost.contains(&lease.lane));
            mine.extend(carry_out(leases, name, &plan));
            // What is too much is given back.
            for lease in mine.drain(..plan.surplus.min(mine.len())) {
                leases.lanes.insert(lease.lane, Held { relay: String::new(), fence: lease.fence });
            }
        };
        for (who, what) in steps {
            let name = format!("r{who}-{lives}");
            match what {
                0 => {
                    lives += 1;
                    gone.extend(held.keys().filter(|it| it.starts_with(&format!("r{who}-"))).cloned());
                }
                _ => if !gone.contains(&name) { ask(&mut leases, &mut held, &gone, &name) },
            }
        }
        let living: Vec<String> = leases.relays.keys().filter(|it| !gone.contains(*it)).cloned().collect();
        for _ in 0..4 {
            for name in &living { ask(&mut leases, &mut held, &gone, name); }
        }
        if !living.is_empty() {
            let share = usize::from(LANES).div_ceil(living.len());
            let all: usize = living.iter().map(|name| leases.lanes_of(name)).sum();
            prop_assert_eq!(all, usize::from(LANES));
            prop_assert!(living.iter().all(|name| leases.lanes_of(name) <= share));
        }
    }
}
