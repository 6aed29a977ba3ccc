//! Parses the windows of time in which events are shown or written.

use seekwell::Window;
use seekwell_core::Nanos;

/// Parses `FROM,LENGTH` or `FROM`. Times have a unit, or are in seconds.
pub fn window(text: &str) -> Result<Window, String> {
    let wrong = || {
        "write FROM,LENGTH, times on the workload's clock: 10s,2s or 0,500ms (s, ms, us; seconds \
         without a unit)"
            .to_owned()
    };
    let (from, length) = match text.split_once(',') {
        Some((f, l)) => (f, Some(l)),
        None => (text, None),
    };
    let from = time(from).ok_or_else(wrong)?;
    let length = match length {
        Some(l) => Some(time(l).filter(|l| l.0 > 0).ok_or_else(wrong)?),
        None => None,
    };
    Ok(Window { from, length })
}

/// Parses `FROM..TO`. Times have a unit, or are in seconds.
pub fn span(text: &str) -> Result<Window, String> {
    let wrong = || "write FROM..TO, times on the workload's clock: 10s..12s or 0..500ms".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let (from, to) = (time(from).ok_or_else(wrong)?, time(to).ok_or_else(wrong)?);
    if to <= from {
        return Err("the end must be after the start: write FROM..TO, as 10s..12s".to_owned());
    }
    Ok(Window {
        from,
        length: Some(Nanos(to.0 - from.0)),
    })
}

fn time(text: &str) -> Option<Nanos> {
    let text = text.trim();
    let (number, shift) = match text {
        t if t.ends_with("ms") => (&t[..t.len() - 2], 1_000),
        t if t.ends_with("us") => (&t[..t.len() - 2], 1_000_000),
        t => (t.strip_suffix('s').unwrap_or(t), 1),
    };
    let ns = seekwell_trace::seconds_text(number.trim_end())?;
    // The limit is about a hundred years, which is far below the maximum of the clock.
    let ns = ns / shift;
    (ns < 3_000_000_000 * 1_000_000_000).then_some(Nanos(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_windows_are_parsed_and_invalid_ones_rejected() {
        let w = |t: &str| window(t).ok().map(|w| (w.from.0, w.length.map(|l| l.0)));
        assert_eq!(w("10s,2s"), Some((10_000_000_000, Some(2_000_000_000))));
        assert_eq!(w("0,500ms"), Some((0, Some(500_000_000))));
        assert_eq!(w("1.5"), Some((1_500_000_000, None)));
        assert_eq!(w("250us, 1ms"), Some((250_000, Some(1_000_000))));
        for bad in ["", ",", "a", "1,", "1,0", "-1,2", "1s,2s,3s", "1e99", "1m"] {
            assert_eq!(w(bad), None, "{bad}");
        }
    }

    #[test]
    fn time_spans_need_both_ends() {
        let s = |t: &str| span(t).ok().map(|w| (w.from.0, w.length.map(|l| l.0)));
        assert_eq!(s("10s..12s"), Some((10_000_000_000, Some(2_000_000_000))));
        assert_eq!(s("0..500ms"), Some((0, Some(500_000_000))));
        for bad in ["", "..", "1..", "..2", "2..1", "1..1", "1,2", "a..b"] {
            assert_eq!(s(bad), None, "{bad}");
        }
    }
}
