//! Where a server is and how it is reached: what a URL or settings as libpq has them say.

mod pairs;

use crate::{
    error::bad_address,
    limits::{
        CONNECT_TIMEOUT, KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_RETRIES, TCP_USER_TIMEOUT,
    },
    tls::{self, Mode, Settings},
};
use pairs::Split;
use std::{path::PathBuf, time::Duration};
use tidegate_core::StoreError;
use tokio_postgres::{
    Config,
    config::{Host, LoadBalanceHosts, SslMode, SslNegotiation},
};

/// An address that can be used.
#[derive(Debug)]
pub(crate) struct Address {
    /// One for each server, in the order in which they are tried.
    pub servers: Vec<Server>,
    pub tls: Settings,
    /// Whether any of the servers may come first.
    pub any_first: bool,
    /// For messages: user, hosts and database, without the password.
    pub place: String,
}

/// How one server is reached.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub config: Config,
    /// Over a Unix socket: there TLS is never spoken.
    pub is_local: bool,
    /// How long it may take to connect and log in.
    pub timeout: Duration,
}

/// Whether a text is the address of a PostgreSQL server: a URL, or settings as libpq has them.
pub fn is_address(text: &str) -> bool {
    is_url(text) || pairs::is_settings(text)
}

/// An address without its password, for people.
pub fn without_password(address: &str) -> String {
    pairs::without_password(address)
}

/// The role that an address names.
pub fn role(address: &str) -> Option<String> {
    let config: Config = pairs::split(address).ok()?.rest.parse().ok()?;
    config.get_user().map(str::to_owned)
}

/// The files that an address names: certificates and keys.
pub fn files(address: &str) -> Vec<PathBuf> {
    let own = pairs::split(address).map(|split| split.own).unwrap_or_default();
    let named = ["sslcert", "sslkey", "sslrootcert"].into_iter().filter_map(|name| own.get(name));
    named.filter(|file| *file != tls::SYSTEM).map(PathBuf::from).collect()
}

/// The address of another database on the same server.
pub fn with_database(address: &str, name: &str) -> Result<String, StoreError> {
    pairs::with_database(address, name)
}

fn is_url(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

impl Address {
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        let Split { rest, mut own, given } = pairs::split(text)?;
        let mut config: Config = rest.parse().map_err(crate::error::bad_url)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(bad_address("the address names no host"));
        }
        if let Some((name, _)) = own.iter().find(|(_, value)| value.is_empty()) {
            let problem =
                format!("{name} is empty: is a variable unset? Leave it out for its default");
            return Err(bad_address(problem));
        }
        let mut take = |name: &str| own.remove(name);
        let user_timeout = take("tcp_user_timeout").map(|text| millis(&text)).transpose()?;
        match user_timeout.unwrap_or(TCP_USER_TIMEOUT) {
            Duration::ZERO => {}
            timeout => {
                config.tcp_user_timeout(timeout);
            }
        }
        let is_direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
        let tls = Settings::new(take, is_direct)?;
        config.ssl_mode(match tls.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        keep_alive(&mut config, &given);
        if config.get_application_name().is_none() {
            config.application_name("tidegate");
        }
        Ok(Self {
            servers: servers(&config)?,
            tls,
            any_first: config.get_load_balance_hosts() == LoadBalanceHosts::Random,
            place: place(&config),
        })
    }
}

fn millis(text: &str) -> Result<Duration, StoreError> {
    let number = text.parse().map_err(|_| {
        bad_address("tcp_user_timeout is a number of milliseconds, or 0 for the system's")
    });
    number.map(Duration::from_millis)
}

/// What the address does not say.
fn keep_alive(config: &mut Config, given: &[String]) {
    let is_given = |name: &str| given.iter().any(|it| it == name);
    if !is_given("keepalives_idle") {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
}

/// Each server by itself, so that one that hangs does not use up the time of the others.
fn servers(config: &Config) -> Result<Vec<Server>, StoreError> {
    let (hosts, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
        return Err(bad_address("`host` and `hostaddr` do not name the same number of servers"));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(bad_address("there must be one port, or one for each host"));
    }
    Ok((0..count).map(|n| server(config, n)).collect())
}

fn server(all: &Config, n: usize) -> Server {
    let mut config = Config::new();
    let address = all.get_hostaddrs().get(n);
    if let Some(address) = address {
        config.hostaddr(*address);
    }
    let is_local = match all.get_hosts().get(n) {
        Some(Host::Tcp(name)) => {
            config.host(name);
            false
        }
        #[cfg(unix)]
        Some(Host::Unix(path)) => {
            config.host_path(path);
            address.is_none()
        }
        // The address is all that there is to be verified.
        None => {
            config.host(address.map(ToString::to_string).unwrap_or_default());
            false
        }
    };
    config.port(all.get_ports().get(n).or(all.get_ports().first()).copied().unwrap_or(5432));
    copy(all, &mut config);
    if is_local {
        config.ssl_mode(SslMode::Disable);
    }
    let timeout = all.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
    Server { config, is_local, timeout }
}

/// Everything but where the server is.
fn copy(from: &Config, to: &mut Config) {
    from.get_user().map(|it| to.user(it));
    from.get_password().map(|it| to.password(it));
    from.get_dbname().map(|it| to.dbname(it));
    from.get_options().map(|it| to.options(it));
    from.get_application_name().map(|it| to.application_name(it));
    from.get_tcp_user_timeout().map(|it| to.tcp_user_timeout(*it));
    from.get_keepalives_interval().map(|it| to.keepalives_interval(it));
    from.get_keepalives_retries().map(|it| to.keepalives_retries(it));
    to.ssl_mode(from.get_ssl_mode())
        .ssl_negotiation(from.get_ssl_negotiation())
        .keepalives(from.get_keepalives())
        .keepalives_idle(from.get_keepalives_idle())
        .target_session_attrs(from.get_target_session_attrs())
        .channel_binding(from.get_channel_binding());
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(5432);
    let named = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let mut hosts: Vec<String> = named.collect();
    if hosts.is_empty() {
        hosts = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let hosts: Vec<String> =
        hosts.iter().enumerate().map(|(n, host)| format!("{host}:{}", port(n))).collect();
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let database = config.get_dbname().map(|name| format!("/{name}")).unwrap_or_default();
    format!("{user}{}{database}", hosts.join(","))
}

#[cfg(test)]
mod tests;
