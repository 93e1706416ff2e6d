use super::*;
use tidegate_drill::history::ServerFault;

fn results(runs: u64, indexes: &[u64]) -> Results {
    let mut results = Results::new(runs);
    indexes.iter().for_each(|index| results.add(*index, &index.to_string()));
    results
}

fn aggregates(indexes: &[u64]) -> Aggregates {
    let mut aggregates = Aggregates::default();
    for index in indexes {
        aggregates.runs += 1;
        aggregates.digest.add(*index, index.to_string().as_bytes());
    }
    aggregates
}

/// Lost, twice, unexpected, other digests, other aggregates.
fn compare(stored: &[u64], counted: &[u64]) -> [u64; 5] {
    let mut findings = Findings::default();
    let expected = aggregates(&[0, 1, 2, 3]);
    findings.compare("batch 1", &results(4, stored), &aggregates(counted), &expected);
    let Findings { lost, twice, unexpected, other_digests, other_aggregates, .. } = findings;
    [lost, twice, unexpected, other_digests, other_aggregates]
}

#[test]
fn every_index_once_in_any_order_is_right() {
    assert_eq!(compare(&[2, 0, 3, 1], &[0, 1, 2, 3]), [0; 5]);
}

#[test]
fn what_is_missing_twice_or_too_much_is_found() {
    assert_eq!(compare(&[0, 1, 2], &[0, 1, 2, 3]), [1, 0, 0, 1, 0]);
    assert_eq!(compare(&[0, 1, 2, 3, 1], &[0, 1, 2, 3]), [0, 1, 0, 1, 0]);
    assert_eq!(compare(&[0, 1, 2, 3, 9], &[0, 1, 2, 3]), [0, 0, 1, 1, 0]);
}

#[test]
fn runs_that_are_counted_twice_are_found() {
    assert_eq!(compare(&[0, 1, 2, 3], &[0, 1, 2, 3, 3]), [0, 0, 0, 1, 1]);
}

#[test]
fn a_batch_may_be_gone_after_a_server_fault_only() {
    let submitted = [
        Submitted { seed: 1, acknowledged: Some(10) },
        Submitted { seed: 2, acknowledged: Some(30) },
        Submitted { seed: 3, acknowledged: None },
    ];
    let mut findings = Findings::default();
    let faults = [ServerFault { from: 15, to: 20 }];
    findings.compare_submissions(&submitted, &HashSet::from([9]), &faults);
    assert_eq!((findings.taken_back, findings.lost, findings.unexpected), (1, 1, 1));
}

#[test]
fn a_stall_is_time_without_progress_while_no_server_fault_is_on() {
    let look = |at: u64, running, completed| Look { at: at * 1000, running, completed };
    let looks = [look(0, 1, 0), look(100, 1, 5), look(900, 1, 5), look(1_000, 1, 6)];
    assert_eq!(stall(&looks, &[]), 900);
    let fault = |from: u64, to: u64| ServerFault { from: from * 1000, to: to * 1000 };
    assert_eq!(stall(&looks, &[fault(300, 880)]), 100);
    let idle = [look(0, 1, 5), look(10, 0, 5), look(5_000, 1, 5), look(5_010, 1, 6)];
    assert_eq!(stall(&idle, &[]), 10, "nothing was to be done");
}

#[tokio::test]
async fn all_batches_are_listed_however_many_there_are() {
    let store = tidegate::open("memory:", tidegate::Access::Create).await.unwrap();
    let workloads = tidegate::workloads::builtin();
    for seed in 0..5 {
        let spec = tidegate::BatchSpec { seed, ..tidegate::BatchSpec::new("noop", 1) };
        tidegate::submit(&*store, &workloads, spec).await.unwrap();
    }
    for page in [1, 2, 5, 6] {
        let listed = all_batches(&store, page).await.unwrap();
        let seeds: Vec<_> = listed.iter().map(|it| it.batch.seed).collect();
        assert_eq!(seeds, [4, 3, 2, 1, 0], "{page} at a time");
    }
}
