//! Numbers as people read them.

use std::time::Duration;

/// `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    group(&number.to_string())
}

/// From here on all digits of a figure would only make a table wide.
const LARGE: f64 = 1e7;

/// Four digits that matter: `0.1235`, `12.35`, `1,234.6`, `1.235e-7`, `4.294e9`.
pub fn figure(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..LARGE).contains(&size) {
        return format!("{number:.3e}");
    }
    let decimals = match number.fract() == 0.0 {
        true => 0,
        false => (3 - size.log10().floor() as i32).clamp(1, 7) as usize,
    };
    group(&format!("{number:.decimals$}"))
}

/// A mean and its margin: two digits of the margin, and as many decimals of the mean, say all that
/// is known.
pub fn with_margin(mean: f64, margin: f64) -> String {
    if !(1e-9..LARGE).contains(&margin) || mean.abs() >= LARGE {
        return format!("{} ± {}", figure(mean), figure(margin));
    }
    let decimals = (1 - margin.log10().floor() as i32).max(0) as usize;
    let fixed = |number: f64| group(&format!("{number:.decimals$}"));
    format!("{} ± {}", fixed(mean), fixed(margin))
}

/// A share of a whole, in percent.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 / whole.max(1) as f64 * 100.0)
}

/// Things per second.
pub fn rate(per_second: f64) -> String {
    match per_second {
        slow if slow < 10.0 => format!("{slow:.1}/s"),
        fast => format!("{}/s", count(fast.round() as u64)),
    }
}

/// `350 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 days`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..172_800 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// `1 run`, `2 runs`.
pub fn runs(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "run" } else { "runs" })
}

/// `1 record`, `2 records`.
pub fn records(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "record" } else { "records" })
}

/// `1 dead message`, `2 dead messages`.
pub fn dead_messages(number: u64) -> String {
    format!("{} dead {}", count(number), if number == 1 { "message" } else { "messages" })
}

/// `1 dead record`, `2 dead records`.
pub fn dead_records(number: u64) -> String {
    format!("{} dead {}", count(number), if number == 1 { "record" } else { "records" })
}

fn group(digits: &str) -> String {
    let start = digits.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let end = digits.find('.').unwrap_or(digits.len());
    let mut grouped = digits[..start].to_owned();
    for (at, digit) in digits[start..end].char_indices() {
        if at > 0 && (end - start - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + &digits[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn figures_have_four_digits() {
        for (number, text) in [
            (0.0, "0"),
            (3.0, "3"),
            (-1_234.0, "-1,234"),
            (0.123_456, "0.1235"),
            (12.345_6, "12.35"),
            (-1_234.56, "-1,234.6"),
            (1.235_4e-7, "1.235e-7"),
            (2.5e20, "2.500e20"),
        ] {
            assert_eq!(figure(number), text);
        }
    }

    #[test]
    fn a_mean_is_as_precise_as_its_margin() {
        for (mean, margin, text) in [
            (52.912_3, 0.149_9, "52.91 ± 0.15"),
            (3.615, 0.007_31, "3.6150 ± 0.0073"),
            (2_147_483_648.5, 12_345.6, "2.147e9 ± 12,345.6"),
            (12_345.6, 234.5, "12,346 ± 234"),
            (5.0, 0.0, "5 ± 0"),
        ] {
            assert_eq!(with_margin(mean, margin), text);
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let texts = [350, 4_200, 200_000, 7_500_000, 260_000_000]
            .map(|millis| span(Duration::from_millis(millis)));
        assert_eq!(texts, ["350 ms", "4.2 s", "3 min 20 s", "2 h 5 min", "3 days"]);
    }
}
