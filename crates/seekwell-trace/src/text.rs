//! Words and numbers out of a line of bytes.

/// The next word (no blanks or tabs in it) of `line` from `*at` on; empty at the end.
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

/// A decimal number: digits only, all of them, and it fits.
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

/// `SECONDS.FRACTION` in nanoseconds; one to nine digits of fraction.
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

/// Appends a decimal number, at least `width` wide, filled up with `fill` on the left.
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

/// Appends a word, at least `width` wide, filled up with blanks on the left.
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
    fn numbers_refuse_what_is_not_one() {
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
    fn seconds_to_the_nanosecond() {
        assert_eq!(seconds_ns(b"1.5"), Some(1_500_000_000));
        assert_eq!(seconds_ns(b"0.000000001"), Some(1));
        for bad in [&b"1"[..], b"1.", b".5", b"1.0000000001", b"99999999999.0"] {
            assert_eq!(seconds_ns(bad), None, "{bad:?}");
        }
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
