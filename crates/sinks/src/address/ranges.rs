//! Addresses that are not of the public Internet, after IANA's registries of special-purpose
//! addresses.

use ipnet::{Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The first that fits gives the word.
const V4: [(Ipv4Net, &str); 18] = [
    // The metadata services of the clouds; Azure's has a public address.
    v4([169, 254, 169, 254], 32, "metadata"),
    v4([168, 63, 129, 16], 32, "metadata"),
    v4([100, 100, 100, 200], 32, "metadata"),
    v4([192, 0, 0, 192], 32, "metadata"),
    v4([0, 0, 0, 0], 8, "unspecified"),
    v4([127, 0, 0, 0], 8, "loopback"),
    v4([10, 0, 0, 0], 8, "private"),
    v4([172, 16, 0, 0], 12, "private"),
    v4([192, 168, 0, 0], 16, "private"),
    v4([169, 254, 0, 0], 16, "link-local"),
    v4([100, 64, 0, 0], 10, "carrier-grade NAT"),
    v4([192, 0, 0, 0], 24, "reserved"),
    v4([192, 0, 2, 0], 24, "reserved"),
    v4([198, 18, 0, 0], 15, "reserved"),
    v4([198, 51, 100, 0], 24, "reserved"),
    v4([203, 0, 113, 0], 24, "reserved"),
    v4([224, 0, 0, 0], 4, "multicast"),
    v4([240, 0, 0, 0], 4, "reserved"),
];

const V6: [(Ipv6Net, &str); 15] = [
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, "metadata"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified"),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback"),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "unique-local"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local"),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "site-local"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "private"),
    v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "reserved"),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "reserved"),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "reserved"),
    // Out of use, and able to hide any IPv4 address: compatible, Teredo, 6to4.
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, "tunnel"),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, "tunnel"),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "tunnel"),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "tunnel"),
];

/// IPv4 as seen from networks that have IPv6 only.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "").0;

/// What kind of address it is, if it is not a public one.
pub fn kind(ip: IpAddr) -> Option<&'static str> {
    match meant(ip) {
        IpAddr::V4(ip) => V4.iter().find(|(net, _)| net.contains(&ip)).map(|(_, kind)| *kind),
        IpAddr::V6(ip) => V6.iter().find(|(net, _)| net.contains(&ip)).map(|(_, kind)| *kind),
    }
}

/// The address behind an IPv4 address in IPv6's clothes.
pub fn meant(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) if NAT64.contains(&ip) => {
            let [.., a, b, c, d] = ip.octets();
            Ipv4Addr::new(a, b, c, d).into()
        }
        other => other,
    }
}

const fn v4(ip: [u8; 4], prefix: u8, kind: &'static str) -> (Ipv4Net, &'static str) {
    let [a, b, c, d] = ip;
    (Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix), kind)
}

const fn v6(ip: [u16; 8], prefix: u8, kind: &'static str) -> (Ipv6Net, &'static str) {
    let [a, b, c, d, e, f, g, h] = ip;
    (Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix), kind)
}
