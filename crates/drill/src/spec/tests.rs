use super::{Budget, BudgetKind, Rate, Spec};
use std::time::Duration;

#[test]
fn a_file_declares_everything_in_seconds() {
    let spec: Spec = toml::from_str(
        r#"
        delay = 0.1
        retry_after = 30
        concurrency = { limit = 52 }
        knee = { start = 10, exponent = 1.1 }
        hint = { parallelism = 10 }
        [[budgets]]
        kind = "requests"
        limit = 6000
        window = 300
        [[budgets]]
        kind = "execution_seconds"
        limit = 1200
        window = 300
        [dataverse]
        elastic = true
        users = { app = "secret" }
        "#,
    )
    .unwrap();
    spec.check().unwrap();
    assert_eq!(spec.delay, Duration::from_millis(100));
    assert_eq!(spec.retry_after, Some(Duration::from_secs(30)));
    assert_eq!(spec.budgets[1].kind, BudgetKind::ExecutionSeconds);
    assert_eq!(spec.budgets[1].window, Duration::from_secs(300));
    assert_eq!(spec.dataverse.users["app"], "secret");
    assert_eq!(spec.id_field, "id");
}

#[test]
fn unknown_keys_are_refused() {
    let error = toml::from_str::<Spec>("dealy = 1.0").unwrap_err();
    assert!(error.to_string().contains("unknown field `dealy`"), "{error}");
}

#[test]
fn what_is_out_of_range_is_refused_with_its_range() {
    let refused = |spec: Spec| spec.check().unwrap_err().to_string();
    let window = Duration::from_secs(1);
    assert_eq!(
        refused(Spec { fail_share: 1.5, ..Spec::default() }),
        "`fail_share` is 1.5: use 0 to 1"
    );
    assert_eq!(
        refused(Spec { rate: Some(Rate { per_second: 0 }), ..Spec::default() }),
        "`rate` allows nothing: use 1 or more"
    );
    let budget = Budget { kind: BudgetKind::Requests, limit: 0.5, window };
    assert_eq!(
        refused(Spec { budgets: vec![budget], ..Spec::default() }),
        "`budgets` have a limit of 0.5: use 1 or more"
    );
    let more_than_all = Spec { fail_share: 0.6, drop_share: 0.6, ..Spec::default() };
    assert!(refused(more_than_all).contains("more than all requests"));
}
