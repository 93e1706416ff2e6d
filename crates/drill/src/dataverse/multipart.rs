//! Taking a batch apart and putting its answer together: `multipart/mixed` with one HTTP message in
//! each part.

use std::fmt::Write;

/// One request in a batch.
#[derive(Debug, PartialEq, Eq)]
pub struct Part<'a> {
    pub method: &'a str,
    pub url: &'a str,
    pub body: &'a str,
}

/// The boundary in a `Content-Type` of `multipart/mixed`.
pub fn boundary(content_type: &str) -> Option<&str> {
    let mut parameters = content_type.split(';').map(str::trim);
    if !parameters.next()?.eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let value = parameters.find_map(|parameter| parameter.strip_prefix("boundary="))?;
    Some(value.trim_matches('"')).filter(|boundary| !boundary.is_empty())
}

/// The requests in `body`, or what is wrong with it.
pub fn parts<'a>(body: &'a str, boundary: &str) -> Result<Vec<Part<'a>>, &'static str> {
    let delimiter = format!("--{boundary}");
    let mut found = Vec::new();
    // Before the first delimiter is nothing that matters.
    for piece in body.split(&delimiter).skip(1) {
        if piece.starts_with("--") {
            return Ok(found);
        }
        found.push(part(piece)?);
    }
    Err("the end of the batch is missing")
}

fn part(piece: &str) -> Result<Part<'_>, &'static str> {
    let (head, message) = blank_line(piece).ok_or("a part has no blank line after its headers")?;
    let kind = header(head, "content-type").ok_or("a part has no Content-Type")?;
    if kind.starts_with("multipart/") {
        return Err("change sets are not part of the drill");
    }
    if !kind.starts_with("application/http") {
        return Err("a part is not application/http");
    }
    let (head, body) = blank_line(message).unwrap_or((message, ""));
    let mut words = head.trim_start().lines().next().unwrap_or_default().split(' ');
    let (Some(method), Some(url)) = (words.next(), words.next()) else {
        return Err("a part does not begin with a request line");
    };
    Ok(Part { method, url, body: body.trim() })
}

/// What is before and after the first blank line.
fn blank_line(text: &str) -> Option<(&str, &str)> {
    let (at, length) = [("\r\n\r\n", 4), ("\n\n", 2)]
        .into_iter()
        .filter_map(|(blank, length)| text.find(blank).map(|at| (at, length)))
        .min()?;
    Some((&text[..at], &text[at + length..]))
}

fn header<'a>(head: &'a str, wanted: &str) -> Option<&'a str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    headers
        .find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
        .map(|(_, value)| value.trim())
}

/// Adds one answer to a batch's body.
pub fn push(body: &mut String, boundary: &str, status: &str, headers: &[(&str, &str)], json: &str) {
    // Writing to a string cannot fail.
    let _ = write!(
        body,
        "--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         HTTP/1.1 {status}\r\nOData-Version: 4.0\r\n"
    );
    for (name, value) in headers {
        let _ = write!(body, "{name}: {value}\r\n");
    }
    let _ = write!(body, "\r\n{json}\r\n");
}

/// Ends a batch's body.
pub fn finish(body: &mut String, boundary: &str) {
    let _ = write!(body, "--{boundary}--\r\n");
}
