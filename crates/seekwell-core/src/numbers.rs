//! Writes numbers with a fixed number of decimals. A zero has no minus sign.

/// Returns `x` with this many decimals: `1.20`, `-0.3`. A value that rounds to zero gives `0.0`,
/// not `-0.0`.
pub fn fixed(x: f64, decimals: usize) -> String {
    without_minus(format!("{x:.decimals$}"))
}

/// Like [`fixed`], but always with a sign: `+1.2`, `-0.3`, `+0.0`.
pub fn signed(x: f64, decimals: usize) -> String {
    match without_minus(format!("{x:.decimals$}")) {
        text if text.starts_with('-') => text,
        text => format!("+{text}"),
    }
}

/// Removes the minus sign from a zero.
fn without_minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_printed_without_a_minus_sign() {
        for (x, decimals, plain, with) in [
            (-0.0, 1, "0.0", "+0.0"),
            (-0.04, 1, "0.0", "+0.0"),
            (0.04, 1, "0.0", "+0.0"),
            (-0.05001, 1, "-0.1", "-0.1"),
            (-0.4, 0, "0", "+0"),
            (-0.6, 0, "-1", "-1"),
            (-10.0, 0, "-10", "-10"),
            (12.345, 2, "12.35", "+12.35"),
            (f64::NEG_INFINITY, 1, "-inf", "-inf"),
        ] {
            assert_eq!(fixed(x, decimals), plain, "{x}");
            assert_eq!(signed(x, decimals), with, "{x}");
        }
    }
}
