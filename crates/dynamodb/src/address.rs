//! What an address says: `dynamodb://TABLE?region=eu-central-1`.

use crate::ticks::Ticks;
use percent_encoding::percent_decode_str;
use std::time::Duration;
use tidegate_core::{Class, Kind, StoreError};
use url::Url;

/// A table, and how it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// The table of messages.
    pub table: String,
    /// Where leases are, and what failed.
    pub side_table: String,
    /// Where the tables are; otherwise as the AWS SDK finds it.
    pub region: Option<String>,
    /// Instead of AWS: another service that speaks its language.
    pub endpoint: Option<String>,
    /// Whose credentials are used; otherwise as the AWS SDK finds them.
    pub profile: Option<String>,
    /// The names of the indexes.
    pub indexes: Indexes,
    /// Into how many parts a topic is divided: as the applications have it that write to the table.
    pub shards: u32,
    /// How many scans over all topics run beside each other.
    pub scan_concurrency: u32,
    /// How many messages one scan over all topics looks at; when there are more, shards are read in order.
    pub page: u32,
    /// Younger messages are left for later: against the lag of indexes, and clocks that differ.
    pub min_age: Duration,
    /// How long a message is kept after it was delivered.
    pub ttl: Option<Duration>,
    /// What a table gets that is created.
    pub billing: Billing,
}

/// The names of a table's indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexes {
    /// Outstanding messages by shard and creation.
    pub outstanding: String,
    /// Delivered messages by shard and delivery.
    pub delivered: String,
    /// All outstanding messages.
    pub outstanding_all: String,
    /// All delivered messages.
    pub delivered_all: String,
}

/// How a table is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Billing {
    /// By request.
    OnDemand,
    /// By capacity, for the table and for each of its indexes.
    Provisioned {
        /// Read capacity units.
        read: u32,
        /// Write capacity units.
        write: u32,
    },
}

impl Default for Indexes {
    fn default() -> Self {
        Self {
            outstanding: "Outstanding".to_owned(),
            delivered: "Delivered".to_owned(),
            outstanding_all: "OutstandingAllTopics".to_owned(),
            delivered_all: "DeliveredAllTopics".to_owned(),
        }
    }
}

/// Enough for what indexes usually lag behind, and for clocks that are set by the network.
const MIN_AGE: Duration = Duration::from_millis(500);

/// Brighter's own bound.
const MAX_SHARDS: u32 = 20;

const SETTINGS: [&str; 14] = [
    "region",
    "endpoint",
    "profile",
    "side_table",
    "shards",
    "scan_concurrency",
    "page",
    "min_age",
    "ttl",
    "billing",
    "outstanding_index",
    "delivered_index",
    "outstanding_all_topics_index",
    "delivered_all_topics_index",
];

/// Whether a text is the address of a DynamoDB table.
pub fn is_address(text: &str) -> bool {
    text.starts_with("dynamodb:")
}

impl Address {
    /// Reads an address. Refuses what it does not know.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let rest = text.strip_prefix("dynamodb://").ok_or_else(|| {
            bad("write dynamodb://TABLE?region=REGION, such as dynamodb://brighter_outbox?region=eu-central-1")
        })?;
        let (table, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let table = table.trim_end_matches('/');
        check_table("the table", table)?;
        let mut address = Self {
            table: table.to_owned(),
            side_table: format!("{table}_tidegate"),
            region: None,
            endpoint: None,
            profile: None,
            indexes: Indexes::default(),
            shards: 3,
            scan_concurrency: 3,
            page: 1_000,
            min_age: MIN_AGE,
            ttl: None,
            billing: Billing::OnDemand,
        };
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting
                .split_once('=')
                .ok_or_else(|| bad(format!("`{setting}` has no value: write `{setting}=VALUE`")))?;
            let value = percent_decode_str(value)
                .decode_utf8()
                .map_err(|_| bad(format!("the value of `{name}` is not valid UTF-8")))?;
            if value.is_empty() {
                return Err(bad(format!("`{name}` is empty: leave it out, or give it a value")));
            }
            address.set(name, &value)?;
        }
        check_table("`side_table`", &address.side_table)?;
        if address.side_table == address.table {
            return Err(bad("`side_table` names the table of messages: name another one"));
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), StoreError> {
        match name {
            "region" => self.region = Some(value.to_owned()),
            "endpoint" => self.endpoint = Some(endpoint(value)?),
            "profile" => self.profile = Some(value.to_owned()),
            "side_table" => value.clone_into(&mut self.side_table),
            "shards" => self.shards = count(name, value, MAX_SHARDS)?,
            "scan_concurrency" => self.scan_concurrency = count(name, value, 100)?,
            "page" => self.page = count(name, value, 10_000)?,
            "min_age" => self.min_age = duration(name, value)?,
            "ttl" => self.ttl = Some(duration(name, value)?),
            "billing" => self.billing = billing(value)?,
            "outstanding_index" => value.clone_into(&mut self.indexes.outstanding),
            "delivered_index" => value.clone_into(&mut self.indexes.delivered),
            "outstanding_all_topics_index" => value.clone_into(&mut self.indexes.outstanding_all),
            "delivered_all_topics_index" => value.clone_into(&mut self.indexes.delivered_all),
            _ => {
                let known = SETTINGS.join(", ");
                return Err(bad(format!("`{name}` is unknown here; known are {known}")));
            }
        }
        Ok(())
    }

    /// Messages that were made later are too young to be read.
    pub fn youngest(&self) -> Ticks {
        Ticks::now().before(self.min_age)
    }

    /// Where tables are, for people.
    pub fn region_or_endpoint(&self) -> &str {
        let known = self.endpoint.as_deref().or(self.region.as_deref());
        known.unwrap_or("the region of the environment")
    }

    /// For people.
    pub fn place(&self) -> String {
        match (&self.endpoint, &self.region) {
            (Some(endpoint), _) => format!("the table {} at {endpoint}", self.table),
            (None, Some(region)) => format!("the table {} in {region}", self.table),
            (None, None) => format!("the table {}", self.table),
        }
    }
}

fn bad(problem: impl Into<String>) -> StoreError {
    StoreError::new(Kind::BadAddress, Class::Permanent, "open the store", problem)
}

/// What DynamoDB takes for the name of a table.
fn check_table(what: &str, name: &str) -> Result<(), StoreError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match (3..=255).contains(&name.len()) && name.chars().all(fits) {
        true => Ok(()),
        false => Err(bad(format!(
            "{what} `{name}` is not the name of a table: 3 to 255 letters, digits, `_`, `-` and `.`"
        ))),
    }
}

fn endpoint(value: &str) -> Result<String, StoreError> {
    // What may be a password is not repeated. DynamoDB takes none in its address: requests are signed.
    if value.contains('@') {
        return Err(bad(
            "`endpoint` has a user or a password: leave them out, credentials come from the AWS SDK",
        ));
    }
    let url = Url::parse(value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match url.filter(Url::has_host) {
        Some(_) => Ok(value.trim_end_matches('/').to_owned()),
        None => {
            Err(bad(format!("`endpoint` is `{value}`: write http://HOST:PORT or https://HOST")))
        }
    }
}

fn count(name: &str, value: &str, most: u32) -> Result<u32, StoreError> {
    let number = value.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| bad(format!("`{name}` is `{value}`: a number from 1 to {most}")))
}

fn duration(name: &str, value: &str) -> Result<Duration, StoreError> {
    let at = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(at);
    let ms = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let ms = number.parse::<u64>().ok().zip(ms).and_then(|(number, ms)| number.checked_mul(ms));
    // Far beyond it, times cannot be computed any more.
    const MOST_MS: u64 = 100 * 365 * 86_400_000;
    let ms = ms.filter(|ms| *ms <= MOST_MS);
    ms.map(Duration::from_millis).ok_or_else(|| {
        bad(format!("`{name}` is `{value}`: write a time such as 500ms, 5s, 12h or 7d"))
    })
}

fn billing(value: &str) -> Result<Billing, StoreError> {
    if value == "on-demand" {
        return Ok(Billing::OnDemand);
    }
    let units = value.split_once('/').and_then(|(read, write)| {
        let (read, write) = (read.parse().ok()?, write.parse().ok()?);
        (read > 0 && write > 0).then_some(Billing::Provisioned { read, write })
    });
    units.ok_or_else(|| {
        bad(format!(
            "`billing` is `{value}`: write on-demand, or READ/WRITE in units, such as 50/25"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_not_the_default() {
        let plain = Address::parse("dynamodb://brighter_outbox").unwrap();
        assert_eq!((plain.shards, plain.scan_concurrency, plain.min_age), (3, 3, MIN_AGE));
        assert_eq!(plain.side_table, "brighter_outbox_tidegate");
        let full = Address::parse(
            "dynamodb://outbox?region=eu-central-1&endpoint=http%3A%2F%2F127.0.0.1%3A8000%2F&shards=20&min_age=5s\
             &ttl=7d&billing=50/25&delivered_index=DeliveredV10&side_table=other",
        )
        .unwrap();
        assert_eq!(full.endpoint.as_deref(), Some("http://127.0.0.1:8000"));
        assert_eq!(full.ttl, Some(Duration::from_secs(7 * 86_400)));
        assert_eq!(full.billing, Billing::Provisioned { read: 50, write: 25 });
        assert_eq!(
            (full.indexes.delivered.as_str(), full.side_table.as_str()),
            ("DeliveredV10", "other")
        );
        assert_eq!(full.place(), "the table outbox at http://127.0.0.1:8000");
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (address, word) in [
            ("dynamodb:outbox", "write dynamodb://TABLE"),
            ("dynamodb://", "not the name of a table"),
            ("dynamodb://a b", "not the name of a table"),
            ("dynamodb://outbox?regoin=x", "`regoin` is unknown here"),
            ("dynamodb://outbox?region", "`region` has no value"),
            ("dynamodb://outbox?region=", "`region` is empty"),
            ("dynamodb://outbox?shards=0", "`shards`"),
            ("dynamodb://outbox?shards=21", "from 1 to 20"),
            ("dynamodb://outbox?min_age=5", "`min_age`"),
            ("dynamodb://outbox?ttl=99999999999999999999d", "`ttl`"),
            ("dynamodb://outbox?endpoint=localhost:8000", "`endpoint`"),
            ("dynamodb://outbox?endpoint=http://a:b@db:8000", "has a user or a password"),
            ("dynamodb://outbox?billing=0/5", "`billing`"),
            ("dynamodb://outbox?side_table=outbox", "name another one"),
            ("dynamodb://outbox?region=%ff", "valid UTF-8"),
        ] {
            let error = Address::parse(address).unwrap_err().to_string();
            assert!(error.contains(word), "{address}: {error}");
        }
    }
}
