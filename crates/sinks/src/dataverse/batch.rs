//! `$batch`: one HTTP message per record in a `multipart/mixed` body.

use std::fmt::Write;

/// Fixed: nothing that a record holds can look like it, because only keys are in a batch.
const BOUNDARY: &str = "batch_tidegate";

/// With the boundary above.
pub const CONTENT_TYPE: &str = "multipart/mixed; boundary=\"batch_tidegate\"";

/// One answer in a batch's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    pub status: u16,
    pub retry_after: Option<&'a str>,
    pub body: &'a str,
}

/// Adds a request without a body.
pub fn push(batch: &mut String, method: &str, path: &str) {
    // Writing to a string cannot fail.
    let _ = write!(
        batch,
        "--{BOUNDARY}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         {method} {path} HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n"
    );
}

/// Ends a batch.
pub fn finish(batch: &mut String) {
    let _ = write!(batch, "--{BOUNDARY}--\r\n");
}

/// The answers in the order of the requests; `None` if it is not a whole batch's answer.
pub fn parts<'a>(content_type: &str, body: &'a str) -> Option<Vec<Part<'a>>> {
    let delimiter = format!("--{}", boundary(content_type)?);
    let mut found = Vec::new();
    // What is before the first delimiter does not matter.
    for piece in body.split(&delimiter).skip(1) {
        if piece.starts_with("--") {
            return Some(found);
        }
        found.push(part(piece)?);
    }
    None
}

fn boundary(content_type: &str) -> Option<&str> {
    let mut parameters = content_type.split(';').map(str::trim);
    let mixed = parameters.next()?.eq_ignore_ascii_case("multipart/mixed");
    let boundary = parameters.find_map(|parameter| parameter.strip_prefix("boundary="))?;
    Some(boundary.trim_matches('"')).filter(|boundary| mixed && !boundary.is_empty())
}

fn part(piece: &str) -> Option<Part<'_>> {
    let (_, message) = piece.split_once("\r\n\r\n")?;
    let (head, body) = message.split_once("\r\n\r\n").unwrap_or((message, ""));
    let mut words = head.trim_start().split_ascii_whitespace();
    let version = words.next()?;
    let status = words.next()?.parse().ok()?;
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let retry_after = headers.find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
    let retry_after = retry_after.map(|(_, value)| value.trim());
    version.starts_with("HTTP/").then_some(Part { status, retry_after, body: body.trim() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "multipart/mixed; boundary=batchresponse_1";

    fn answer(status: &str, body: &str) -> String {
        format!(
            "--batchresponse_1\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 {status}\r\n\
             OData-Version: 4.0\r\n\r\n{body}\r\n"
        )
    }

    #[test]
    fn answers_are_read_in_their_order() {
        let body = answer("204 No Content", "") + &answer("400 Bad Request", "{\"error\":1}");
        let whole = format!("{body}--batchresponse_1--\r\n");
        let part = |status, body| Part { status, retry_after: None, body };
        let expected = [part(204, ""), part(400, "{\"error\":1}")];
        assert_eq!(parts(KIND, &whole).unwrap(), expected);
        assert_eq!(
            parts("multipart/mixed;boundary=\"batchresponse_1\"", &whole).unwrap(),
            expected
        );
        assert_eq!(parts(KIND, &body), None, "cut off");
        assert_eq!(parts("application/json", &whole), None);
        assert_eq!(parts(KIND, "--batchresponse_1\r\n\r\nwhat?\r\n--batchresponse_1--"), None);
    }
}
