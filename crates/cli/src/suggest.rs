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

/// What a parser says of a field that it does not know, with the closest that it does.
pub fn unknown_field(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.to_owned() };
    let mut words = rest.split('`').step_by(2);
    let unknown = words.next().unwrap_or_default();
    let known: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    match did_you_mean(unknown, known.iter().copied()) {
        none if none.is_empty() => format!("`{unknown}` is no key here ({})", known.join(", ")),
        one => format!("`{unknown}` is no key here{one}"),
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

    #[test]
    fn an_unknown_field_comes_with_what_was_meant() {
        let message = "unknown field `sinc`, expected `topic` or `sink`";
        assert_eq!(unknown_field(message), "`sinc` is no key here; did you mean `sink`?");
        let message = "unknown field `zzz`, expected one of `topic`, `sink`, `x`";
        assert_eq!(unknown_field(message), "`zzz` is no key here (topic, sink, x)");
        assert_eq!(unknown_field("missing field `x`"), "missing field `x`");
    }
}
