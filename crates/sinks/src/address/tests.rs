use super::*;

fn rules(allowed: &[&str]) -> Rules {
    let allowed = allowed.iter().map(|text| Allowed::try_from((*text).to_owned()).unwrap());
    Rules { allowed: allowed.collect() }
}

fn literal(rules: &Rules, url: &str) -> Result<(), String> {
    rules.judge_literal(&Url::parse(url).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn only_public_addresses_need_no_permission() {
    let cases = [
        ("93.184.216.34", None),
        ("2606:2800:220:1:248:1893:25c8:1946", None),
        ("172.15.255.255", None),
        ("172.32.0.0", None),
        ("100.63.255.255", None),
        ("169.254.169.254", Some("metadata")),
        ("fd00:ec2::254", Some("metadata")),
        ("168.63.129.16", Some("metadata")),
        ("100.100.100.200", Some("metadata")),
        ("0.0.0.0", Some("unspecified")),
        ("0.1.2.3", Some("unspecified")),
        ("127.0.0.1", Some("loopback")),
        ("127.255.255.254", Some("loopback")),
        ("10.1.2.3", Some("private")),
        ("172.16.0.1", Some("private")),
        ("172.31.255.255", Some("private")),
        ("192.168.0.1", Some("private")),
        ("169.254.1.1", Some("link-local")),
        ("100.64.0.1", Some("carrier-grade NAT")),
        ("198.18.0.1", Some("reserved")),
        ("224.0.0.1", Some("multicast")),
        ("255.255.255.255", Some("reserved")),
        ("::", Some("unspecified")),
        ("::1", Some("loopback")),
        ("fc00::1", Some("unique-local")),
        ("fdff::1", Some("unique-local")),
        ("fe80::1", Some("link-local")),
        ("febf::1", Some("link-local")),
        ("fec0::1", Some("site-local")),
        ("ff02::1", Some("multicast")),
        ("2001:db8::1", Some("reserved")),
        ("::ffff:127.0.0.1", Some("loopback")),
        ("::ffff:169.254.169.254", Some("metadata")),
        ("::ffff:93.184.216.34", None),
        ("::127.0.0.1", Some("tunnel")),
        ("64:ff9b::10.0.0.1", Some("private")),
        ("64:ff9b::93.184.216.34", None),
        ("2002:7f00:1::", Some("tunnel")),
        ("2001:0:1::", Some("tunnel")),
    ];
    for (ip, expected) in cases {
        assert_eq!(ranges::kind(ip.parse().unwrap()), expected, "{ip}");
    }
}

#[test]
fn no_spelling_of_an_address_gets_around_the_rules() {
    let spellings = [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://１２７.0.0.1/",
        "http://[::1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
    ];
    for url in spellings {
        let error = literal(&rules(&[]), url).unwrap_err();
        assert!(error.contains("loopback") && error.contains("`allow`"), "{url}: {error}");
    }
}

#[test]
fn what_is_allowed_is_an_address_a_network_or_a_host() {
    for allowed in ["127.0.0.1", "127.0.0.0/8", "2130706433", "::ffff:127.0.0.1"] {
        assert_eq!(literal(&rules(&[allowed]), "http://127.0.0.1:8080/"), Ok(()), "{allowed}");
    }
    assert_eq!(literal(&rules(&["127.0.0.0/8"]), "http://[::ffff:127.0.0.1]/"), Ok(()));
    assert!(literal(&rules(&["127.0.0.2", "localhost"]), "http://127.0.0.1/").is_err());

    let loopback = "127.0.0.1".parse().unwrap();
    assert!(rules(&["LOCALHOST"]).judge("localhost.", loopback).is_ok());
    let error = rules(&["other"]).judge("localhost", loopback).unwrap_err().to_string();
    let expected = "localhost (127.0.0.1) is a loopback address: if it is meant, add it to `allow`";
    assert_eq!(error, expected);
}

#[test]
fn what_allows_nothing_is_refused() {
    for text in ["localhost:80", "http://localhost", "10.0.0.0/99", ""] {
        let error = Allowed::try_from(text.to_owned()).unwrap_err();
        assert!(error.contains("allows nothing"), "{error}");
    }
}
