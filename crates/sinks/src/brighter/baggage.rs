//! Baggage that consumers can read.
//!
//! Consumers throw on baggage in any other form and reject the whole message. It tells who traces what, and no
//! message should be lost over it: what they cannot read is left out, and the rest is sent.

/// The most entries that consumers take.
const MOST: usize = 32;

/// The longest key.
const MAX_KEY: usize = 256;

/// Those entries that consumers can read, joined as they expect it.
pub fn readable(baggage: &str) -> String {
    let entries = baggage.split(',').map(str::trim).filter(|entry| is_entry(entry));
    entries.take(MOST).collect::<Vec<_>>().join(",")
}

fn is_entry(entry: &str) -> bool {
    entry.split_once('=').is_some_and(|(key, value)| is_key(key) && !value.contains('='))
}

fn is_key(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_*/-".contains(&byte);
    let begins = key.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    begins && key.len() <= MAX_KEY && key.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_consumers_can_read_stays_as_it_is() {
        for text in ["", "userId=alice", "userId=alice,serverNode=DF-28", "a*/b-_=x y;z,b="] {
            assert_eq!(readable(text), text);
        }
    }

    #[test]
    fn what_they_cannot_read_is_left_out() {
        assert_eq!(readable("a=1, b=2 ,=3,c,_d=4,e=5=6,f;g=7,a=8"), "a=1,b=2,a=8");
        let long = "k".repeat(257);
        assert_eq!(readable(&format!("{long}=1,{}=2", &long[1..])), format!("{}=2", &long[1..]));
        let many: Vec<String> = (0..40).map(|n| format!("k{n}=v")).collect();
        assert_eq!(readable(&many.join(",")), many[..32].join(","));
    }

    proptest! {
        #[test]
        fn whatever_comes_consumers_can_read_it(text in "[aZ0_*/=,; é-]{0,200}") {
            let readable = readable(&text);
            let entries: Vec<&str> =
                readable.split(',').filter(|_| !readable.is_empty()).collect();
            prop_assert!(entries.len() <= 32);
            for entry in entries {
                let (key, value) = entry.split_once('=').unwrap();
                prop_assert!(!value.contains('='));
                prop_assert!(key.starts_with(|c: char| c.is_ascii_alphanumeric()));
                let plain = |c: char| c.is_ascii_alphanumeric() || "_*/-".contains(c);
                prop_assert!(key.chars().all(plain));
            }
        }
    }
}
