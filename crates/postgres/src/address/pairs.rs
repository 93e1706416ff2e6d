//! Addresses as names and values. Those that the driver does not know, or knows in another unit than libpq, are
//! taken out of them.

use super::is_url;
use crate::error::bad_address;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use tidegate_core::StoreError;

/// Names that are not left to the driver.
const OWN: [&str; 7] =
    ["sslmode", "sslverify", "sslrootcert", "sslcert", "sslkey", "sslpassword", "tcp_user_timeout"];

/// An address in two parts.
#[derive(Debug)]
pub(super) struct Split {
    /// What the driver reads.
    pub rest: String,
    /// What it does not.
    pub own: BTreeMap<String, String>,
    /// Every name that was given.
    pub given: Vec<String>,
}

pub(super) fn split(text: &str) -> Result<Split, StoreError> {
    match (is_url(text), is_settings(text)) {
        (true, _) => split_url(text),
        (_, true) => split_settings(text),
        _ => Err(bad_address("the URL does not begin with postgres://")),
    }
}

/// `name=value …`; what stands before a colon would be the scheme of a URL.
pub(super) fn is_settings(text: &str) -> bool {
    let name = text.split_once('=').map(|(name, _)| name.trim());
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    })
}

/// Parameters begin behind the first question mark that follows user and password.
fn parameters(url: &str) -> (&str, Option<&str>) {
    let user_ends = url.find('@').unwrap_or_default();
    match url[user_ends..].find('?') {
        Some(at) => (&url[..user_ends + at], Some(&url[user_ends + at + 1..])),
        None => (url, None),
    }
}

fn split_url(url: &str) -> Result<Split, StoreError> {
    let place = url.split(['/', '?']).nth(2).unwrap_or_default();
    if place.matches('@').count() > 1 {
        return Err(bad_address("an @ in a password must be written as %40"));
    }
    let (before, parameters) = parameters(url);
    let mut split = Split { rest: before.to_owned(), own: BTreeMap::new(), given: Vec::new() };
    let mut left = Vec::new();
    for parameter in parameters.unwrap_or_default().split('&').filter(|it| !it.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let name = decoded(name)?;
        if OWN.contains(&&*name) {
            split.own.insert(name.clone(), decoded(value)?);
        } else {
            left.push(format!("{}={value}", driver_name(&name)));
        }
        split.given.push(name);
    }
    if !left.is_empty() {
        split.rest += &format!("?{}", left.join("&"));
    }
    Ok(split)
}

fn decoded(text: &str) -> Result<String, StoreError> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| bad_address("a parameter of the URL is not UTF-8"))?.into_owned())
}

/// libpq and the driver have another word for one of them.
fn driver_name(name: &str) -> &str {
    if name == "keepalives_count" { "keepalives_retries" } else { name }
}

fn split_settings(text: &str) -> Result<Split, StoreError> {
    let mut split = Split { rest: String::new(), own: BTreeMap::new(), given: Vec::new() };
    for (name, value) in settings(text)? {
        split.given.push(name.clone());
        if OWN.contains(&&*name) {
            split.own.insert(name, value);
        } else {
            split.rest += &written(driver_name(&name), &value);
        }
    }
    Ok(split)
}

fn written(name: &str, value: &str) -> String {
    format!("{name}='{}' ", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Names and values as libpq reads them: spaces around `=`, quotes around a value with spaces, a backslash before
/// a character that stands for itself.
fn settings(text: &str) -> Result<Vec<(String, String)>, StoreError> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let Some((name, after)) = rest.split_once('=') else {
            return Err(bad_address("the settings have a name without a value"));
        };
        let mut characters = after.trim_start().chars();
        let quoted = characters.clone().next() == Some('\'');
        if quoted {
            characters.next();
        }
        let (mut value, mut ended) = (String::new(), !quoted);
        while let Some(character) = characters.next() {
            match character {
                '\\' => value.extend(characters.next()),
                '\'' if quoted => {
                    ended = true;
                    break;
                }
                space if space.is_whitespace() && !quoted => break,
                other => value.push(other),
            }
        }
        if !ended {
            return Err(bad_address("the settings have a quote that does not end"));
        }
        pairs.push((name.trim().to_owned(), value));
        rest = characters.as_str().trim_start();
    }
    Ok(pairs)
}

/// Values that nobody may see.
const SECRET: [&str; 2] = ["password", "sslpassword"];

pub(super) fn without_password(address: &str) -> String {
    match is_url(address) {
        true => url_without_password(address),
        false => match settings(address) {
            Ok(pairs) => {
                let shown = pairs.iter().filter(|(name, _)| !SECRET.contains(&name.as_str()));
                let quotes = |value: &str| value.is_empty() || value.contains([' ', '\'', '\\']);
                let text = shown.map(|(name, value)| match quotes(value) {
                    true => written(name, value),
                    false => format!("{name}={value} "),
                });
                text.collect::<String>().trim_end().to_owned()
            }
            Err(_) => String::new(),
        },
    }
}

fn url_without_password(url: &str) -> String {
    let (before, parameters) = parameters(url);
    let hidden = || {
        let (scheme, rest) = before.split_once("://")?;
        let (user, host) = rest.rsplit_once('@')?;
        let (user, _) = user.split_once(':')?;
        Some(format!("{scheme}://{user}@{host}"))
    };
    let shown = hidden().unwrap_or_else(|| before.to_owned());
    let is_secret = |it: &&str| {
        let name = it.split('=').next().unwrap_or_default();
        !decoded(name).is_ok_and(|name| !SECRET.contains(&name.as_str()))
    };
    let left: Vec<&str> = parameters
        .unwrap_or_default()
        .split('&')
        .filter(|it| !it.is_empty() && !is_secret(it))
        .collect();
    if left.is_empty() { shown } else { format!("{shown}?{}", left.join("&")) }
}
