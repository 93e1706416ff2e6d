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

/// Names that the driver knows, beside the one that it knows by another word.
const DRIVER: [&str; 18] = [
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "keepalives_count",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
];

fn is_known(name: &str) -> bool {
    OWN.contains(&name) || DRIVER.contains(&name)
}

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

/// A URL in its parts. User, password and hosts end at the first slash or question mark: an @ behind it is none of
/// theirs.
struct Parts<'a> {
    scheme: &'a str,
    authority: &'a str,
    /// With its slash; empty if there is none.
    path: &'a str,
    parameters: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        Self { scheme, authority, path, parameters }
    }

    fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let given = self.parameters.split('&').filter(|it| !it.is_empty());
        given.map(|it| it.split_once('=').unwrap_or((it, "")))
    }

    /// Whether something here may be the rest of a password with a character that ends the authority.
    fn may_be_cut(&self) -> bool {
        let hosts = self.authority.rsplit('@').next().unwrap_or_default();
        let is_port = |port: &str| port.chars().all(|c| c.is_ascii_digit());
        let is_host = |host: &str| match host.rsplit_once(':') {
            Some((_, port)) if !host.ends_with(']') => is_port(port),
            _ => true,
        };
        self.path.contains('@') || !hosts.split(',').all(is_host)
    }
}

fn split_url(url: &str) -> Result<Split, StoreError> {
    let parts = Parts::of(url);
    if parts.authority.matches('@').count() > 1 {
        return Err(bad_address("an @ in a password must be written as %40"));
    }
    if parts.may_be_cut() {
        return Err(bad_address(
            "the URL has no host, or no number as its port, before the first / or ?: \
             write @ / ? in a user, password or database as %40 %2F %3F",
        ));
    }
    let Parts { scheme, authority, path, .. } = parts;
    let rest = format!("{scheme}://{authority}{path}");
    let mut split = Split { rest, own: BTreeMap::new(), given: Vec::new() };
    let mut left = Vec::new();
    for (name, value) in parts.parameters() {
        let name = decoded(name)?;
        if !is_known(&name) {
            let may_be_secret = parts.parameters.contains('@');
            return Err(unknown(&name, &split.given, may_be_secret));
        }
        if OWN.contains(&&*name) {
            split.own.insert(name.clone(), decoded(value)?);
        } else {
            // The driver takes the first @ of all for the end of user and password.
            left.push(format!("{}={}", driver_name(&name), value.replace('@', "%40")));
        }
        split.given.push(name);
    }
    if !left.is_empty() {
        split.rest += &format!("?{}", left.join("&"));
    }
    Ok(split)
}

/// What follows a password may be the rest of it, and is not repeated.
fn unknown(name: &str, given: &[String], may_be_secret: bool) -> StoreError {
    let after_password = given.iter().any(|it| SECRET.contains(&it.as_str()));
    match may_be_secret || after_password || !is_settings(&format!("{name}=")) {
        true => bad_address(
            "the address has a parameter that is not known, or a password with characters that must be written \
             otherwise: as %26 and so on in a URL, in quotes in settings",
        ),
        false => bad_address(format!("`{name}` is no parameter of an address")),
    }
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
        if !is_known(&name) {
            return Err(unknown(&name, &split.given, false));
        }
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

pub(super) fn with_database(address: &str, database: &str) -> Result<String, StoreError> {
    // What cannot be read is refused with its reason.
    split(address)?;
    if !is_url(address) {
        let kept = settings(address)?.into_iter().filter(|(name, _)| name != "dbname");
        let kept: String = kept.map(|(name, value)| written(&name, &value)).collect();
        return Ok(format!("{kept}{}", written("dbname", database)).trim_end().to_owned());
    }
    let parts = Parts::of(address);
    let mut url = format!("{}://{}/{database}", parts.scheme, parts.authority);
    let mut separator = '?';
    for (name, value) in parts.parameters() {
        if decoded(name)? != "dbname" {
            url += &format!("{separator}{name}={value}");
            separator = '&';
        }
    }
    Ok(url)
}

/// Values that nobody may see.
const SECRET: [&str; 2] = ["password", "sslpassword"];

/// What is shown of an address that may hold a password anywhere.
const HIDDEN: &str = "postgres://…";

pub(super) fn without_password(address: &str) -> String {
    let shown = match is_url(address) {
        true => url_without_password(&Parts::of(address)),
        false => settings_without_password(address),
    };
    shown.unwrap_or_else(|| HIDDEN.to_owned())
}

/// `None` if a name is not known: it may be the rest of a password.
fn settings_without_password(text: &str) -> Option<String> {
    let pairs = settings(text).ok().filter(|pairs| pairs.iter().all(|(name, _)| is_known(name)))?;
    let shown = pairs.iter().filter(|(name, _)| !SECRET.contains(&name.as_str()));
    let quotes = |value: &str| value.is_empty() || value.contains([' ', '\'', '\\']);
    let text = shown.map(|(name, value)| match quotes(value) {
        true => written(name, value),
        false => format!("{name}={value} "),
    });
    Some(text.collect::<String>().trim_end().to_owned())
}

fn url_without_password(parts: &Parts<'_>) -> Option<String> {
    if parts.may_be_cut() {
        return None;
    }
    let (user, hosts) = parts.authority.rsplit_once('@').unwrap_or(("", parts.authority));
    let user = user.split(':').next().filter(|user| !user.is_empty());
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let mut shown = format!("{}://{user}{hosts}{}", parts.scheme, parts.path);
    let mut separator = '?';
    for (name, value) in parts.parameters() {
        let decoded = decoded(name).ok().filter(|name| is_known(name))?;
        if !SECRET.contains(&decoded.as_str()) {
            shown += &format!("{separator}{name}={value}");
            separator = '&';
        }
    }
    Some(shown)
}
