//! The values of options: numbers, sizes, times and lists, as fio reads them.

use super::job::Amount;

/// How the values of a job are read.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// Option kb_base: 1000 or 1024, the number of bytes of `k`. With 1024, `ki` has 1000 bytes.
    pub kb: u64,
    /// Number of bytes of a page, the value of `$pagesize`.
    pub page: u64,
}

impl Default for Reading {
    fn default() -> Self {
        Reading {
            kb: 1024,
            page: 4096,
        }
    }
}

/// The units of a number of bytes, by their power.
const POWERS: &[(char, u32)] = &[('k', 1), ('m', 2), ('g', 3), ('t', 4), ('p', 5)];

impl Reading {
    /// Returns the number of bytes of a unit, for example `k`, `kb` or `kib`.
    fn unit(self, unit: &str) -> Option<u64> {
        let unit = unit.to_ascii_lowercase();
        let short = unit.strip_suffix('b').unwrap_or(&unit);
        let (short, other) = match short.strip_suffix('i') {
            Some(s) => (s, true),
            None => (short, false),
        };
        let base = match (self.kb, other) {
            (1000, false) | (1024, true) => 1000u64,
            _ => 1024,
        };
        let mut letters = short.chars();
        match (letters.next(), letters.next()) {
            (None, _) if !other => Some(1),
            (Some(c), None) => {
                let power = POWERS.iter().find(|p| p.0 == c)?.1;
                base.checked_pow(power)
            }
            _ => None,
        }
    }

    /// Parses a number of bytes, for example `64k`, `0x1000`, `1.5m` or `(4*1k)`.
    pub(super) fn bytes(self, text: &str) -> Option<u64> {
        let text = text.trim();
        if let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            let n = sum(inner, &|t| self.bytes(t).map(|n| n as f64))?;
            return (n >= 0.0 && n < (1u64 << 60) as f64).then_some(n as u64);
        }
        if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
            return u64::from_str_radix(hex, 16).ok();
        }
        scaled(text, &|unit| self.unit(unit))
    }

    /// Parses a number of bytes, a percentage, or a number of zones.
    pub(super) fn amount(self, text: &str) -> Option<Amount> {
        if let Some(percent) = text.strip_suffix('%') {
            let n = percent.trim().parse::<f64>().ok();
            return n.filter(|n| (0.0..=100.0).contains(n)).map(Amount::Percent);
        }
        if let Some(zones) = text.strip_suffix(['z', 'Z']) {
            return zones.parse().ok().map(Amount::Zones);
        }
        self.bytes(text)
            .filter(|n| *n <= 1 << 60)
            .map(Amount::Bytes)
    }
}

/// The units of a time in nanoseconds. fio does not distinguish upper and lower case.
const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("nsec", 1),
    ("us", 1_000),
    ("usec", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses a time and returns nanoseconds. `unit` is the length of a number without a unit.
pub(super) fn time(text: &str, unit: u64) -> Option<u64> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        let n = sum(inner, &|t| time(t, unit).map(|n| n as f64 / unit as f64))?;
        let n = n * unit as f64;
        return (n >= 0.0 && n < (1u64 << 60) as f64).then_some(n as u64);
    }
    scaled(text, &|u| match u {
        "" => Some(unit),
        u => TIMES
            .iter()
            .find(|t| t.0.eq_ignore_ascii_case(u))
            .map(|t| t.1),
    })
}

/// Parses a number with an optional fraction and a unit.
fn scaled(text: &str, unit: &dyn Fn(&str) -> Option<u64>) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, rest) = text.split_at(split.unwrap_or(text.len()));
    let factor = unit(rest.trim())?;
    match number.split_once('.') {
        None => number.parse::<u64>().ok()?.checked_mul(factor),
        Some(_) => {
            let n = number.parse::<f64>().ok()? * factor as f64;
            (n < (1u64 << 60) as f64).then_some(n as u64)
        }
    }
}

/// Evaluates a sum of products without inner brackets, for example `2*1g-4k`.
fn sum(text: &str, one: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
    // The operator at the lowest level that comes last is evaluated last.
    for operators in [&['+', '-'][..], &['*', '/'][..]] {
        if let Some(at) = text.rfind(operators).filter(|at| *at > 0) {
            let (left, right) = (sum(&text[..at], one)?, sum(&text[at + 1..], one)?);
            return match text.as_bytes()[at] {
                b'+' => Some(left + right),
                b'-' => Some(left - right),
                b'*' => Some(left * right),
                _ => (right != 0.0).then(|| left / right),
            };
        }
    }
    one(text)
}

/// Splits a list at a separator that has no backslash before it. The backslashes are removed.
pub(super) fn list(text: &str, separator: char) -> Vec<String> {
    let (mut all, mut part) = (Vec::new(), String::new());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        if c == '\\' && letters.next_if_eq(&separator).is_some() {
            part.push(separator);
        } else if c == separator {
            all.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
    }
    all.push(part);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of fio's manual, section "Parameter types".
    #[test]
    fn sizes_follow_the_examples_of_the_manual() {
        let usual = Reading::default();
        let si = Reading {
            kb: 1000,
            page: 4096,
        };
        for text in [
            "4096", "4096b", "4096B", "4k", "4kb", "4kB", "4K", "4KB", "0x1000",
        ] {
            assert_eq!(usual.bytes(text), Some(4096), "{text}");
        }
        for text in ["1000000", "1mi", "1000ki"] {
            assert_eq!(usual.bytes(text), Some(1_000_000), "{text}");
        }
        for text in ["4ki", "4kib", "4kiB", "4Ki", "4KiB"] {
            assert_eq!(si.bytes(text), Some(4096), "{text}");
        }
        for text in ["1m", "1000k"] {
            assert_eq!(si.bytes(text), Some(1_000_000), "{text}");
        }
        assert_eq!(usual.bytes("1.5k"), Some(1536));
        assert_eq!(usual.bytes("(2*1g-4k)"), Some((2 << 30) - 4096));
        for bad in [
            "",
            "k",
            "4x",
            "-4k",
            "4kk",
            "i",
            "(1/0)",
            "(",
            "99999999999p",
            "4k4k",
        ] {
            assert_eq!(usual.bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn amounts_can_be_percentages_and_zones() {
        let r = Reading::default();
        assert_eq!(r.amount("20%"), Some(Amount::Percent(20.0)));
        assert_eq!(r.amount("8z"), Some(Amount::Zones(8)));
        assert_eq!(r.amount("8k"), Some(Amount::Bytes(8192)));
        for bad in ["101%", "%", "z", "-1%"] {
            assert_eq!(r.amount(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_have_the_unit_of_the_option_without_a_suffix() {
        let s = 1_000_000_000;
        assert_eq!(time("30", s), Some(30 * s));
        assert_eq!(time("30", 1000), Some(30_000));
        assert_eq!(time("2M", s), Some(120 * s));
        assert_eq!(time("500msec", s), Some(s / 2));
        assert_eq!(time("(2*30)", s), Some(60 * s));
        assert_eq!(time("1x", s), None);
    }

    #[test]
    fn a_backslash_keeps_a_separator() {
        assert_eq!(list("a:b", ':'), ["a", "b"]);
        assert_eq!(list(r"/dev/disk\:1:b", ':'), ["/dev/disk:1", "b"]);
        assert_eq!(list("", ':'), [""]);
    }
}
