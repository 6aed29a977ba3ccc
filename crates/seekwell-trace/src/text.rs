//! Parses words and numbers from a line of bytes.

/// Returns the next word of `line` from `*at` on, and moves `*at` behind the word. Words are
/// separated by blanks or tabs. The result is empty at the end.
#[inline]
pub fn word<'a>(line: &'a [u8], at: &mut usize) -> &'a [u8] {
    let mut i = *at;
    while i < line.len() && (line[i] == b' ' || line[i] == b'\t') {
        i += 1;
    }
    let from = i;
    while i < line.len() && line[i] != b' ' && line[i] != b'\t' {
        i += 1;
    }
    *at = i;
    &line[from..i]
}

/// Parses a decimal number that consists of digits only. Returns `None` if the number does not fit
/// into 64 bits.
#[inline]
pub fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 20 {
        return None;
    }
    let mut n = 0u64;
    for &c in word {
        let d = c.wrapping_sub(b'0');
        if d > 9 {
            return None;
        }
        n = n.checked_mul(10)?.checked_add(u64::from(d))?;
    }
    Some(n)
}

/// Parses `SECONDS.FRACTION` and returns nanoseconds. The fraction must have one to nine digits.
#[inline]
pub fn seconds_ns(word: &[u8]) -> Option<u64> {
    let dot = word.iter().position(|&c| c == b'.')?;
    let fraction = &word[dot + 1..];
    if fraction.len() > 9 {
        return None;
    }
    let mut ns = number(fraction)?;
    for _ in fraction.len()..9 {
        ns *= 10;
    }
    number(&word[..dot])?
        .checked_mul(1_000_000_000)?
        .checked_add(ns)
}

/// Parses a decimal number whose unit is `unit_ns`, with or without a fraction. Returns
/// nanoseconds, rounded down. Returns `None` for a sign, an exponent, or more than 18 digits of
/// fraction.
#[inline]
pub fn decimal_ns(word: &[u8], unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = match memchr::memchr(b'.', word) {
        None => (word, None),
        Some(dot) => (&word[..dot], Some(&word[dot + 1..])),
    };
    let ns = number(whole)?.checked_mul(unit_ns)?;
    let Some(digits) = fraction else {
        return Some(ns);
    };
    if digits.len() > 18 {
        return None;
    }
    let scale = 10u128.pow(digits.len() as u32);
    let part = u128::from(number(digits)?) * u128::from(unit_ns) / scale;
    ns.checked_add(u64::try_from(part).ok()?)
}

/// Appends a decimal number. If it has fewer than `width` characters, it is padded on the left with
/// `fill`.
pub fn push_number(out: &mut Vec<u8>, mut n: u64, width: usize, fill: u8) {
    let mut digits = [0u8; 20];
    let mut i = digits.len();
    loop {
        i -= 1;
        digits[i] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    for _ in digits.len() - i..width {
        out.push(fill);
    }
    out.extend_from_slice(&digits[i..]);
}

/// Appends a word. If it has fewer than `width` characters, it is padded on the left with blanks.
pub fn push_right(out: &mut Vec<u8>, word: &[u8], width: usize) {
    for _ in word.len()..width {
        out.push(b' ');
    }
    out.extend_from_slice(word);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_numbers_are_rejected() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for bad in [
            &b""[..],
            b"18446744073709551616",
            b"-1",
            b"1x",
            b"000000000000000000001",
        ] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn seconds_are_parsed_to_the_nanosecond() {
        assert_eq!(seconds_ns(b"1.5"), Some(1_500_000_000));
        assert_eq!(seconds_ns(b"0.000000001"), Some(1));
        for bad in [&b"1"[..], b"1.", b".5", b"1.0000000001", b"99999999999.0"] {
            assert_eq!(seconds_ns(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn decimals_in_any_unit_are_exact() {
        const US: u64 = 1_000;
        assert_eq!(decimal_ns(b"12", US), Some(12_000));
        assert_eq!(decimal_ns(b"12.5", US), Some(12_500));
        assert_eq!(decimal_ns(b"0.0009", US), Some(0), "below 1 ns");
        let s = 1_000_000_000;
        assert_eq!(
            decimal_ns(b"1455592804.123456789", s),
            Some(1_455_592_804_123_456_789)
        );
        assert_eq!(
            decimal_ns(b"9007199254740993", 1),
            Some(9_007_199_254_740_993)
        );
        for bad in [
            &b""[..],
            b".5",
            b"1.",
            b"1.2.3",
            b"-1",
            b"1e3",
            b"18446744073709551616",
        ] {
            assert_eq!(decimal_ns(bad, US), None, "{bad:?}");
        }
        assert_eq!(decimal_ns(b"18446744073709552", US), None);
    }

    #[test]
    fn numbers_are_padded() {
        let mut out = Vec::new();
        push_number(&mut out, 42, 5, b'0');
        push_number(&mut out, 0, 2, b' ');
        push_right(&mut out, b"Q", 3);
        assert_eq!(out, b"00042 0  Q");
    }
}
