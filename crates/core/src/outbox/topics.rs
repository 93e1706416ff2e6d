//! Which topics: patterns, and the routes made of them.

use serde::{Deserialize, Serialize};

/// A topic, or several: `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(pub String);

impl Pattern {
    /// Whether a topic is one of these.
    pub fn matches(&self, topic: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = topic.strip_prefix(parts.next().unwrap_or_default()) else {
            return false;
        };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }

    /// The same as a regular expression, without anchors.
    fn regex(&self) -> String {
        let escape = |c: char| match c {
            '*' => ".*".to_owned(),
            c if c.is_alphanumeric() || c == '_' || !c.is_ascii() => c.to_string(),
            c => format!("\\{c}"),
        };
        self.0.chars().map(escape).collect()
    }
}

/// Where the messages on some topics go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Which topics.
    pub topics: Pattern,
    /// Which sink.
    pub sink: String,
}

impl Route {
    /// The first route that takes a topic decides.
    pub fn find<'a>(routes: &'a [Route], topic: &str) -> Option<&'a Route> {
        routes.iter().find(|route| route.topics.matches(topic))
    }

    /// Its topics as a regular expression that PostgreSQL understands.
    pub fn regex(&self) -> String {
        format!("^(?:{})$", self.topics.regex())
    }
}

/// A selection of topics: those that at least one of its choices takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Topics(pub Vec<Choice>);

/// What one pattern takes and no earlier one did.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Choice {
    /// Which topics.
    pub takes: Pattern,
    /// Without these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<Pattern>,
}

impl Topics {
    /// Whether a topic is in the selection.
    pub fn contains(&self, topic: &str) -> bool {
        let unless = |choice: &Choice| choice.unless.iter().any(|it| it.matches(topic));
        self.0.iter().any(|choice| choice.takes.matches(topic) && !unless(choice))
    }

    /// What goes to a sink: its routes, each without what an earlier route to another sink takes.
    pub fn of_sink(routes: &[Route], sink: &str) -> Self {
        let own = routes.iter().enumerate().filter(|(_, route)| route.sink == sink);
        let choice = |(at, route): (usize, &Route)| {
            let others = routes[..at].iter().filter(|earlier| earlier.sink != sink);
            let unless = others.map(|earlier| earlier.topics.clone()).collect();
            Choice { takes: route.topics.clone(), unless }
        };
        Self(own.map(choice).collect())
    }

    /// The same as a regular expression that PostgreSQL understands.
    pub fn regex(&self) -> String {
        // Without a choice, there is nothing that it could match.
        let regexes: Vec<String> = self.0.iter().map(Choice::regex).collect();
        if regexes.is_empty() { "(?!)".to_owned() } else { format!("^(?:{})$", regexes.join("|")) }
    }

    /// What is in any of these selections; `None` if there are none.
    pub fn regex_of_any(selections: &[Topics]) -> Option<String> {
        let regexes: Vec<String> = selections.iter().map(Topics::regex).collect();
        (!regexes.is_empty()).then(|| regexes.join("|"))
    }
}

impl Choice {
    fn regex(&self) -> String {
        let unless: Vec<String> = self.unless.iter().map(Pattern::regex).collect();
        let takes = self.takes.regex();
        if unless.is_empty() { takes } else { format!("(?!(?:{})$){takes}", unless.join("|")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        let matches = |pattern: &str, topic| Pattern(pattern.to_owned()).matches(topic);
        assert!(matches("*", "orders") && matches("*", ""));
        assert!(matches("orders", "orders") && !matches("orders", "orders.eu"));
        assert!(matches("orders.*", "orders.eu.paid") && !matches("orders.*", "orders"));
        assert!(matches("*.paid", "orders.paid") && !matches("*.paid", "orders.paid.late"));
        assert!(matches("a*b*c", "a-b-b-c") && !matches("a*b*c", "a-c"));
        assert!(!matches("aba*aba", "aba") && matches("aba*aba", "abaaba"));
    }

    #[test]
    fn a_sink_gets_what_no_earlier_route_takes() {
        let route =
            |topics: &str, sink: &str| Route { topics: Pattern(topics.into()), sink: sink.into() };
        let routes = [route("a.b", "x"), route("a.*", "y"), route("*", "x")];
        let (x, y) = (Topics::of_sink(&routes, "x"), Topics::of_sink(&routes, "y"));
        for topic in ["a.b", "a.c", "b"] {
            let sink = &Route::find(&routes, topic).unwrap().sink;
            assert_eq!((x.contains(topic), y.contains(topic)), (sink == "x", sink == "y"));
        }
        assert_eq!(x.regex(), r"^(?:a\.b|(?!(?:a\..*)$).*)$");
        let nothing = Topics::of_sink(&routes, "z");
        assert_eq!(Topics::regex_of_any(&[nothing, y]).unwrap(), r"(?!)|^(?:(?!(?:a\.b)$)a\..*)$");
        assert_eq!(Topics::regex_of_any(&[]), None);
    }
}
