//! A guess of the fields of an unknown text, for the message about an unrecognised trace.

use crate::formats::csv::is_operation;
use crate::text::{decimal_ns, number};

/// Number of lines that are examined.
const LINES: usize = 20;
/// Maximum length in sectors that a guess takes for a number of sectors.
const SECTORS_MAX: u64 = 2048;

/// Returns a value of `--columns` that probably describes this text, or `None` if its lines do not
/// look like requests.
pub(crate) fn columns(head: &[u8]) -> Option<String> {
    let lines = head.split(|&c| c == b'\n').map(<[u8]>::trim_ascii);
    let lines: Vec<&[u8]> = lines.filter(|l| !l.is_empty() && l[0] != b'#').collect();
    // The first line can be a header, and the last one incomplete.
    let whole = lines.get(1..lines.len().saturating_sub(1).min(LINES))?;
    let rows: Vec<Vec<&[u8]>> = whole.iter().map(|l| fields(l)).collect();
    let width = rows.iter().map(Vec::len).min()?;
    let all = |i: usize, test: fn(&[u8]) -> bool| rows.iter().all(|r| test(r[i]));
    let (word, numeric) = (is_operation as fn(&[u8]) -> bool, |w: &[u8]| {
        number(w).is_some()
    });
    let op = (0..width).find(|&i| all(i, word))?;
    let times = |i: &usize| {
        let parsed = rows.iter().map(|r| decimal_ns(r[*i], 1));
        let values: Option<Vec<u64>> = parsed.collect();
        values.is_some_and(|v| v.is_sorted() && v.first() != v.last())
            || all(*i, |w| w.contains(&b'.') && decimal_ns(w, 1).is_some())
    };
    let time = (0..width).filter(|&i| i != op).find(times)?;
    let rest = |i: &usize| *i != op && *i != time && all(*i, numeric);
    let most = |i: usize| rows.iter().filter_map(|r| number(r[i])).max().unwrap_or(0);
    let position = (0..width).filter(rest).max_by_key(|&i| most(i))?;
    let mut lengths = (0..width).filter(|i| rest(i) && *i != position);
    let length = lengths.find(|&i| i > position && most(i) > 1).or_else(|| {
        let mut lengths = (0..width).filter(|i| rest(i) && *i != position);
        lengths.find(|&i| most(i) > 1)
    })?;
    let whole_sectors = |i: usize| {
        let mut numbers = rows.iter().filter_map(|r| number(r[i]));
        numbers.all(|n| n % 512 == 0)
    };
    let seconds = all(time, |w| w.contains(&b'.'));
    Some(format!(
        "{}={},op={},{}={},{}={}",
        if seconds { "t_s" } else { "t_us" },
        time + 1,
        op + 1,
        if whole_sectors(position) {
            "offset"
        } else {
            "sector"
        },
        position + 1,
        if most(length) <= SECTORS_MAX && !whole_sectors(length) {
            "sectors"
        } else {
            "bytes"
        },
        length + 1,
    ))
}

fn fields(line: &[u8]) -> Vec<&[u8]> {
    match b",;\t".iter().find(|&&b| line.contains(&b)) {
        Some(&b) => line.split(|&c| c == b).map(<[u8]>::trim_ascii).collect(),
        None => {
            let words = line.split(u8::is_ascii_whitespace);
            words.filter(|w| !w.is_empty()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_values() {
        for (text, guess) in [
            (
                "when;what;disk;where;much\n0.5;read;3;4096;8192\n0.7;write;3;81920;4096\n0.9;read;3;512;512\n",
                Some("t_s=1,op=2,offset=4,bytes=5"),
            ),
            (
                "R 17 1001 8\nW 29 77 16\nR 31 2003 8\nR 33 9 8\n",
                Some("t_us=2,op=1,sector=3,sectors=4"),
            ),
            (
                "once upon a time\nthere was a disk\nand a head\nthe end\n",
                None,
            ),
            ("", None),
            ("a\n", None),
        ] {
            assert_eq!(columns(text.as_bytes()).as_deref(), guess, "{text}");
        }
    }
}
