//! What a request asks for, once its body is understood.

use axum::{http::StatusCode, response::Response};
use twox_hash::XxHash3_128;

/// The records of a request, and how they are answered.
pub struct Work {
    pub writes: Vec<Write>,
    pub rule: Rule,
    /// Makes the answer, given the same writes.
    pub reply: Reply,
}

/// Makes an answer.
pub type Reply = Box<dyn Fn(&[Write]) -> Response + Send + Sync>;

/// One record.
#[derive(Debug)]
pub struct Write {
    /// By what it is recognized when it comes again.
    pub key: u128,
    /// Why it is not stored.
    pub refusal: Option<Refusal>,
}

/// Why a record or a whole request is refused.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub message: String,
}

/// What a refused record means to the others of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// None is stored.
    Together,
    /// Nothing.
    Each,
    /// Those before it are stored; those after it are not tried.
    UntilRefused,
}

impl Work {
    /// The keys of the records to store.
    pub fn kept(&self) -> impl Iterator<Item = u128> {
        let tried = match self.rule {
            Rule::Together if self.writes.iter().any(Write::is_refused) => &[],
            Rule::Together | Rule::Each => &self.writes[..],
            Rule::UntilRefused => &self.writes[..until_refused(&self.writes)],
        };
        tried.iter().filter(|write| !write.is_refused()).map(|write| write.key)
    }

    /// How many records are refused for their own sake.
    pub fn refused(&self) -> usize {
        let refused = self.writes.iter().filter(|write| write.is_refused()).count();
        if self.rule == Rule::UntilRefused { refused.min(1) } else { refused }
    }
}

impl Write {
    pub fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

/// How many writes come before the first refused one.
pub fn until_refused(writes: &[Write]) -> usize {
    writes.iter().position(Write::is_refused).unwrap_or(writes.len())
}

/// Recognizes a record by its id or its text.
pub fn key(text: &str) -> u128 {
    XxHash3_128::oneshot(text.as_bytes())
}

/// Recognizes the deletion of a record: another act than writing it.
pub fn key_of_deletion(key: u128) -> u128 {
    !key
}

/// Whether the record is among the share that is always refused.
pub fn is_unlucky(key: u128, share: f64, seed: u64) -> bool {
    // The upper 53 bits are as much as a float between 0 and 1 can tell apart.
    let luck = (XxHash3_128::oneshot_with_seed(seed, &key.to_le_bytes()) as u64) >> 11;
    (luck as f64 / (1_u64 << 53) as f64) < share
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse;

    fn work(rule: Rule, refused: &[u128]) -> Work {
        let refusal = |key| refused.contains(&key).then(|| Refusal::bad("no"));
        let writes = (1..=4).map(|key| Write { key, refusal: refusal(key) }).collect();
        Work { writes, rule, reply: Box::new(|_| ().into_response()) }
    }

    fn kept(rule: Rule, refused: &[u128]) -> (Vec<u128>, usize) {
        let work = work(rule, refused);
        (work.kept().collect(), work.refused())
    }

    #[test]
    fn a_refused_record_means_to_the_others_what_the_rule_says() {
        assert_eq!(kept(Rule::Together, &[]), (vec![1, 2, 3, 4], 0));
        assert_eq!(kept(Rule::Together, &[2]), (vec![], 1));
        assert_eq!(kept(Rule::Each, &[2, 4]), (vec![1, 3], 2));
        assert_eq!(kept(Rule::UntilRefused, &[3, 4]), (vec![1, 2], 1));
        assert_eq!(kept(Rule::UntilRefused, &[]), (vec![1, 2, 3, 4], 0));
    }

    #[test]
    fn the_same_share_of_records_is_always_unlucky() {
        let unlucky = || (0..10_000).filter(|i| is_unlucky(key(&i.to_string()), 0.1, 7));
        let count = unlucky().count();
        assert!((900..1100).contains(&count), "{count}");
        assert!(unlucky().eq(unlucky()));
        assert!(!is_unlucky(key("1"), 0.0, 7));
    }
}
