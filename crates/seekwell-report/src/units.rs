//! Formats numbers with three significant digits and their units.

use seekwell_core::numbers::{fixed, signed};

/// Formats a time in nanoseconds: `850 ns`, `12.3 us`, `4.56 ms`, `1.23 s`.
pub fn time_ns(ns: f64) -> String {
    match ns {
        n if n < 999.5 => format!("{} ns", fixed(n, 0)),
        n if n < 999.5e3 => format!("{} us", three(n / 1e3)),
        n if n < 999.5e6 => format!("{} ms", three(n / 1e6)),
        n => format!("{} s", three(n / 1e9)),
    }
}

/// Formats a rate in bytes per second, with powers of ten as in data sheets: `61.4 MB/s`.
pub fn rate(bytes_per_sec: f64) -> String {
    match bytes_per_sec {
        b if b < 999.5e3 => format!("{} kB/s", three(b / 1e3)),
        b if b < 999.5e6 => format!("{} MB/s", three(b / 1e6)),
        b => format!("{} GB/s", three(b / 1e9)),
    }
}

/// Formats an amount in bytes: `1.46 GB`.
pub fn bytes(n: f64) -> String {
    match n {
        b if b < 999.5 => format!("{} B", fixed(b, 0)),
        b if b < 999.5e3 => format!("{} kB", three(b / 1e3)),
        b if b < 999.5e6 => format!("{} MB", three(b / 1e6)),
        b if b < 999.5e9 => format!("{} GB", three(b / 1e9)),
        b => format!("{} TB", three(b / 1e12)),
    }
}

/// Formats a number with three significant digits, or with all digits of a larger integer: `0.123`,
/// `1.23`, `12.3`, `123`, `1,234`.
pub fn three(x: f64) -> String {
    let a = x.abs();
    if a == 0.0 {
        "0".to_owned()
    } else if a < 0.9995 {
        fixed(x, 3)
    } else if a < 9.995 {
        fixed(x, 2)
    } else if a < 99.95 {
        fixed(x, 1)
    } else {
        let sign = if x < 0.0 { "-" } else { "" };
        format!("{sign}{}", count(a.round() as u64))
    }
}

/// Formats a percentage with this number of decimals: `12.3 %`.
pub fn percent(per_cent: f64, decimals: usize) -> String {
    format!("{} %", fixed(per_cent, decimals))
}

/// Formats a percentage with its sign: `+12.3 %`.
pub fn signed_percent(per_cent: f64, decimals: usize) -> String {
    format!("{} %", signed(per_cent, decimals))
}

/// Formats a count with a comma before every three digits.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Formats the share of `part` in `all` in per cent with one decimal. It is never rounded up to 100
/// or down to 0.
pub fn share(part: u64, all: u64) -> String {
    if all == 0 {
        return "-".to_owned();
    }
    let tenths = (part as f64 * 1000.0 / all as f64).round() as u64;
    let tenths = if part < all { tenths.min(999) } else { tenths };
    let tenths = if part > 0 { tenths.max(1) } else { tenths };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_after_three_digits() {
        assert_eq!(time_ns(999.0), "999 ns");
        assert_eq!(time_ns(999.6), "1.00 us");
        assert_eq!(time_ns(12_345_678.0), "12.3 ms");
        assert_eq!(time_ns(61e9), "61.0 s");
        assert_eq!(rate(61_420_000.0), "61.4 MB/s");
        assert_eq!(bytes(1_464e6), "1.46 GB");
        assert_eq!(three(1_234_567.0), "1,234,567");
        assert_eq!(three(-2.5), "-2.50");
        assert_eq!(three(0.0), "0");
        assert_eq!(three(-0.000_2), "0.000");
        assert_eq!(time_ns(-0.2), "0 ns");
        assert_eq!(percent(-0.0, 1), "0.0 %");
        assert_eq!(signed_percent(-0.04, 1), "+0.0 %");
        assert_eq!(signed_percent(-3.24, 1), "-3.2 %");
    }

    #[test]
    fn share_is_printed_as_100_percent_only_if_exact() {
        assert_eq!(share(9_999_999, 10_000_000), "99.9 %");
        assert_eq!(share(10, 10), "100.0 %");
        assert_eq!(share(1, 1_000_000), "0.1 %");
        assert_eq!(share(0, 5), "0.0 %");
        assert_eq!(share(0, 0), "-");
    }
}
