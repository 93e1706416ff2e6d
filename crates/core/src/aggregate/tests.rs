use super::*;
use crate::run::Run;
use proptest::prelude::*;

fn emit(index: u64, value: f64) -> (Vec<u8>, Emitted) {
    let mut run = Run::new(1, index);
    run.number("value", value);
    run.category("sign", if value < 0.0 { "minus" } else { "plus" });
    (value.to_string().into_bytes(), run.finish().unwrap().clone())
}

fn aggregate(values: &[(u64, f64)]) -> Aggregates {
    let mut all = Aggregates::default();
    for (index, value) in values {
        let (result, emitted) = emit(*index, *value);
        all.add(*index, &result, &emitted);
    }
    all
}

fn series(values: &[f64]) -> Series {
    let mut series = Series::default();
    values.iter().for_each(|value| series.add(*value));
    series
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![-1000i32..1000, any::<i32>()]
        .prop_map(f64::from)
        .boxed()
        .prop_union((-1e150f64..1e150).boxed())
        .or(prop_oneof![Just(0.0), Just(-0.0), Just(5e-324), Just(1e16), Just(-1e16)].boxed())
}

proptest! {
    #[test]
    fn the_split_leaves_no_trace(
        values in prop::collection::vec(any_number(), 1..1500),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        turn in any::<prop::sample::Index>(),
    ) {
        let indexed: Vec<(u64, f64)> = (0..).zip(values.iter().copied()).collect();
        let whole = aggregate(&indexed);

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(indexed.len())).collect();
        cuts.extend([0, indexed.len()]);
        cuts.sort_unstable();
        let mut parts: Vec<Aggregates> =
            cuts.windows(2).map(|cut| aggregate(&indexed[cut[0]..cut[1]])).collect();
        let turn = turn.index(parts.len());
        parts.rotate_left(turn);
        let mut merged = Aggregates::default();
        for part in &parts {
            merged.merge(&Aggregates::decode(&part.encode()).unwrap());
        }

        prop_assert_eq!(&whole, &merged);
        prop_assert_eq!(whole.encode(), merged.encode());
        let bits = |a: &Aggregates| serde_json::to_string(&a.summary()).unwrap();
        prop_assert_eq!(bits(&whole), bits(&merged));
    }

    #[test]
    fn whole_numbers_add_up_exactly(values in prop::collection::vec(any::<i32>(), 1..200)) {
        let series = series(&values.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
        let sum: i64 = values.iter().map(|v| i64::from(*v)).sum();
        let mean = sum as f64 / values.len() as f64;
        prop_assert!((series.mean() - mean).abs() <= mean.abs() * 1e-15);
    }

    #[test]
    fn a_sum_forgets_what_is_taken_back(values in prop::collection::vec(any_number(), 0..50)) {
        let mut sum = exact::ExactSum::default();
        values.iter().for_each(|value| sum.add(*value));
        values.iter().rev().for_each(|value| sum.add(-*value));
        prop_assert_eq!(sum.value(), (0.0, 0.0));
    }
}

#[test]
fn sums_keep_what_floating_point_loses() {
    let values = [1e16, 1.0, -1e16, 1.0, 1.0];
    assert_eq!(series(&values).mean(), 3.0 / 5.0);
}

#[test]
fn deviation_survives_a_large_mean() {
    let spread = [4.0, 7.0, 13.0, 16.0];
    let shifted = spread.map(|v| v + 1e9);
    assert_eq!(series(&shifted).standard_deviation(), series(&spread).standard_deviation());
    assert_eq!(series(&spread).standard_deviation(), 30f64.sqrt());
}

#[test]
fn few_values_have_exact_quantiles() {
    let values: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(
        series(&values).quantiles([0.05, 0.25, 0.5, 0.75, 0.95]),
        [5.0, 25.0, 50.0, 75.0, 95.0]
    );
}

#[test]
fn many_values_have_close_quantiles() {
    let values: Vec<f64> = (1..=100_000).map(|i| -f64::from(i) * 0.37).collect();
    let [low, median, high] = series(&values).quantiles([0.05, 0.5, 0.95]);
    for (got, want) in [(low, -35_150.0), (median, -18_500.0), (high, -1_850.0)] {
        assert!((got / want - 1.0f64).abs() < 0.004, "{got} is not close to {want}");
    }
}

#[test]
fn a_damaged_part_is_noticed() {
    assert!(Aggregates::decode(&[255; 7]).is_none());
}

#[test]
fn the_digest_tells_results_apart() {
    let [a, b, c] = [[(0, 1.0), (1, 2.0)], [(1, 2.0), (0, 1.0)], [(0, 2.0), (1, 1.0)]]
        .map(|values| aggregate(&values).digest.to_string());
    assert_eq!(a, b);
    assert_ne!(a, c);
    assert_eq!(a.len(), 32);
}
