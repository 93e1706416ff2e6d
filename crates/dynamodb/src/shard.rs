//! In which part of a topic a message is stored, so that no part of the table gets all the load.

use ring::digest::{SHA256, digest};

/// The number of a key's shard: all messages with the key are in one, and so are found in their order.
///
/// The first four bytes of the key's SHA-256, as an **unsigned** number. Versions of Brighter take them as a signed
/// one, so that some of their shards have negative numbers; such messages are found all the same, because the shards
/// that are read are those that messages name.
pub fn of_key(key: &str, shards: u32) -> u32 {
    let hash = digest(&SHA256, key.as_bytes());
    let first: [u8; 4] = std::array::from_fn(|at| hash.as_ref()[at]);
    u32::from_le_bytes(first) % shards.max(1)
}

/// The name of a shard of a topic.
pub fn name(topic: &str, shard: u32) -> String {
    format!("{topic}_{shard}")
}

/// The number of a shard. Some versions of Brighter give negative ones: whoever reads the shards of a topic by their
/// numbers does not find what is there.
pub fn number(name: &str) -> Option<i64> {
    let (_, number) = name.rsplit_once('_')?;
    number.parse().ok().filter(|_| !number.starts_with('+'))
}

/// Whether a shard has a negative number.
pub fn is_negative(name: &str) -> bool {
    number(name).is_some_and(|number| number < 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key, and its shard among 3 and among 20, computed by another implementation.
    const VECTORS: [(&str, u32, u32); 6] = [
        ("42", 2, 3),          // Brighter: -2, -13
        ("customer-1", 0, 16), // Brighter: -1, 0
        ("", 2, 15),
        ("a", 2, 10),
        ("ключ", 1, 17),
        ("order/7", 0, 1),
    ];

    #[test]
    fn keys_have_the_shards_of_the_design() {
        for (key, of_3, of_20) in VECTORS {
            assert_eq!((of_key(key, 3), of_key(key, 20)), (of_3, of_20), "{key:?}");
        }
        assert_eq!(name("orders", of_key("42", 3)), "orders_2");
    }

    #[test]
    fn negative_shards_are_told_from_topics_with_a_dash() {
        assert_eq!(number("orders_-2"), Some(-2));
        assert_eq!((number("orders_2"), number("or_ders_0")), (Some(2), Some(0)));
        for none in ["orders-2", "a_-", "_", "", "orders_-x", "a_+1"] {
            assert_eq!(number(none), None, "{none}");
        }
    }
}
