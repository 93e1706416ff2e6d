//! Did you mean …?

/// How alike two words must be for a typo to be likely.
const LIKELY: f64 = 0.75;

/// `; did you mean …?` if one of `known` is close to `word`, else nothing.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let alike = |name: &&str| strsim::jaro_winkler(word, name);
    let closest = known.into_iter().max_by(|a, b| alike(a).total_cmp(&alike(b)));
    match closest.filter(|name| alike(name) >= LIKELY) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_close_is_suggested() {
        let known = ["bingo", "noop", "sleep"];
        assert_eq!(did_you_mean("bigno", known), "; did you mean `bingo`?");
        assert_eq!(did_you_mean("xyz", known), "");
        assert_eq!(did_you_mean("bingo", []), "");
    }
}
