//! Messages as they are: the payload is the body, and headers stay headers.

use super::{config::OWN_HEADERS, signing};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tidegate_core::{
    headers::{self, attribute},
    sink::Item,
};

/// Headers that a message may not decide: they are about a connection, prove who sends, or are the
/// client's own.
const KEPT_BACK: [&str; 10] = [
    "accept",
    "accept-encoding",
    "authorization",
    "content-type",
    "cookie",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "user-agent",
];

/// The payload's media type, as the message declares it.
pub fn content_type(item: &Item<'_>) -> HeaderValue {
    let declared = item.headers.get(headers::CONTENT_TYPE).and_then(|it| it.parse().ok());
    declared.unwrap_or(HeaderValue::from_static(headers::JSON))
}

/// The headers of a message that is sent as it is.
pub fn plain(item: &Item<'_>) -> HeaderMap {
    let mut headers = passed_on(item, |_| true);
    headers.insert(CONTENT_TYPE, content_type(item));
    headers
}

/// The headers of a message that HTTP can carry and that `wanted` asks for.
pub fn passed_on(item: &Item<'_>, wanted: impl Fn(&str) -> bool) -> HeaderMap {
    let fitting =
        item.headers.iter().filter(|(name, _)| wanted(name)).filter_map(|(name, value)| {
            let name = HeaderName::try_from(name).ok().filter(is_free)?;
            Some((name, HeaderValue::from_str(value).ok()?))
        });
    fitting.collect()
}

/// Whether a header is an attribute of a CloudEvent.
pub fn is_attribute(name: &str) -> bool {
    attribute(name).is_some()
}

fn is_free(name: &HeaderName) -> bool {
    let signed = [signing::ID, signing::TIMESTAMP, signing::SIGNATURE];
    let name_of = name.as_str();
    !OWN_HEADERS.contains(&name_of) && !KEPT_BACK.contains(&name_of) && !signed.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Headers;

    fn sent(pairs: &[(&str, &str)]) -> Vec<String> {
        let headers = Headers::from_iter(pairs.iter().copied());
        let sent = plain(&Item { headers: &headers, ..Item::record("1", "{}") });
        let text = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", value.to_str().unwrap())
        };
        sent.iter().map(text).collect()
    }

    #[test]
    fn headers_stay_headers() {
        let sent = sent(&[
            ("Content-Type", "text/plain; charset=utf-8"),
            ("traceparent", "00-1-2-01"),
            ("Ce-Type", "a b"),
            ("Content-Encoding", "gzip"),
        ]);
        let expected = [
            "ce-type: a b",
            "content-encoding: gzip",
            "traceparent: 00-1-2-01",
            "content-type: text/plain; charset=utf-8",
        ];
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_message_decides_nothing_about_the_connection() {
        let sent = sent(&[
            ("Host", "evil"),
            ("Content-Length", "0"),
            ("transfer-encoding", "chunked"),
            ("connection", "close"),
            ("keep-alive", "1"),
            ("proxy-authorization", "x"),
            ("Authorization", "Bearer forged"),
            ("cookie", "a=b"),
            ("webhook-signature", "v1,forged"),
            ("content-type", "a\nb: c"),
            ("bad name", "x"),
            ("bad-value", "a\r\nb: c"),
        ]);
        assert_eq!(sent, ["content-type: application/json"]);
    }
}
