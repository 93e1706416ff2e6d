//! Refusing what no service can keep.

use super::{Budget, BudgetKind, Spec};

/// A field of the spec is out of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct InvalidSpec {
    field: &'static str,
    problem: String,
}

impl Spec {
    /// Whether all fields are within their ranges. [`Service::start`](crate::Service::start) asks.
    pub fn check(&self) -> Result<(), InvalidSpec> {
        self.check_shares()?;
        for (field, value) in [("jitter", self.jitter), ("scale", self.scale)] {
            require(value.is_finite() && value >= 0.0, field, || {
                format!("is {value}: use 0 or more")
            })?;
        }
        if let Some(knee) = self.knee {
            let fits = knee.exponent.is_finite() && knee.exponent >= 1.0;
            require(fits, "knee", || format!("has exponent {}: use 1 or more", knee.exponent))?;
        }
        require(self.concurrency.is_none_or(|it| it.limit > 0), "concurrency", at_least_one)?;
        require(self.rate.is_none_or(|it| it.per_second > 0), "rate", at_least_one)?;
        require(self.hint.is_none_or(|it| it.parallelism > 0), "hint", at_least_one)?;
        require(self.max_group != Some(0), "max_group", at_least_one)?;
        self.budgets.iter().try_for_each(Budget::check)
    }

    fn check_shares(&self) -> Result<(), InvalidSpec> {
        let fates = [
            ("fail_share", self.fail_share),
            ("unavailable_share", self.unavailable_share),
            ("drop_share", self.drop_share),
        ];
        for (field, share) in fates.into_iter().chain([("bad_share", self.bad_share)]) {
            require((0.0..=1.0).contains(&share), field, || format!("is {share}: use 0 to 1"))?;
        }
        let sum: f64 = fates.iter().map(|(_, share)| share).sum();
        require(sum <= 1.0, "fail_share", || {
            "with `unavailable_share` and `drop_share` is more than all requests".to_owned()
        })
    }
}

impl Budget {
    fn check(&self) -> Result<(), InvalidSpec> {
        let least = match self.kind {
            BudgetKind::Requests => 1.0,
            BudgetKind::ExecutionSeconds => 1e-6,
        };
        let fits = (least..1e12).contains(&self.limit);
        require(fits, "budgets", || {
            format!("have a limit of {}: use {least} or more", self.limit)
        })?;
        require(!self.window.is_zero(), "budgets", || "have a window of no length".to_owned())
    }
}

fn at_least_one() -> String {
    "allows nothing: use 1 or more".to_owned()
}

fn require(
    holds: bool,
    field: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), InvalidSpec> {
    if holds { Ok(()) } else { Err(InvalidSpec { field, problem: problem() }) }
}
