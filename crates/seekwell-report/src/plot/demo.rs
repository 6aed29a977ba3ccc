//! The picture of a demo: its table as bars, and its claims below.

use super::Picture;
use super::bars::{Bar, Column, bars};
use seekwell_evidence::demo::{Demo, Shown};
use std::collections::BTreeSet;

/// Parses a value such as `12.0`, or `12.0 (11.0..13.0)` over several seeds.
fn value(cell: &str) -> Option<(f64, Option<(f64, f64)>)> {
    let (mean, range) = match cell.split_once(" (") {
        Some((mean, rest)) => {
            let (least, most) = rest.strip_suffix(')')?.split_once("..")?;
            (mean, Some((least.parse().ok()?, most.parse().ok()?)))
        }
        None => (cell, None),
    };
    let mean: f64 = mean.trim().parse().ok()?;
    mean.is_finite().then_some((mean, range))
}

/// Returns the number of left columns that are needed to make the rows distinct.
fn keys(s: &Shown) -> usize {
    let apart = |n: &usize| {
        let names: BTreeSet<&[String]> = s.rows.iter().map(|r| &r[..*n]).collect();
        names.len() == s.rows.len()
    };
    let n = (1..s.columns.len()).find(apart);
    n.unwrap_or(1)
}

/// Returns the picture of a demo.
pub fn demo(d: &Demo, s: &Shown) -> String {
    let mut p = Picture::new(d.name);
    p.paragraph(d.claim, "");
    p.paragraph(&s.setting, "dim");
    let n = keys(s);
    let rows: Vec<String> = s.rows.iter().map(|r| r[..n].join(", ")).collect();
    let column = |(k, name): (usize, &String)| {
        let cell = |r: &Vec<String>| {
            let (value, range) = value(&r[k])?;
            Some(Bar {
                value,
                text: r[k].clone(),
                range,
                best: false,
            })
        };
        Column {
            name: name.clone(),
            bars: s.rows.iter().map(cell).collect(),
        }
    };
    let columns = s.columns.iter().enumerate().skip(n).map(column);
    // A column of words has no bars.
    let drawn: Vec<Column> = columns
        .filter(|c| c.bars.iter().any(Option::is_some))
        .collect();
    bars(&mut p, &rows, &drawn);
    for (words, holds) in &s.checks {
        let (mark, class) = if *holds {
            ("holds", "dim")
        } else {
            ("FAILS", "bad")
        };
        p.paragraph(&format!("{mark}: {words}"), class);
    }
    p.paragraph(&format!("seekwell demo {}", d.name), "dim");
    p.finish()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use seekwell_evidence::demo::demos;

    fn shown() -> Shown {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        Shown {
            setting: "a disk".to_owned(),
            columns: row(["device", "scheduler", "MB/s", "gain"]),
            rows: vec![
                row(["disk", "noop", "10.5", "1.00"]),
                row(["disk", "<img onerror=1>", "21.0 (20.0..23.5)", "2.00"]),
                row(["flash", "noop", "400", "1.00"]),
            ],
            checks: vec![("it is 2 > 1".to_owned(), true), ("no".to_owned(), false)],
            ..Shown::default()
        }
    }

    #[test]
    fn rows_are_labelled_by_their_key_columns() {
        let s = shown();
        assert_eq!(keys(&s), 2);
        let d = demos().next().expect("one");
        let svg = demo(d, &s);
        check::well_formed(&svg);
        check::no_overlap(&svg);
        assert!(svg.contains(">disk, noop</text>") && svg.contains(">flash, noop</text>"));
        assert!(svg.contains("disk, &lt;img onerror=1&gt;"));
        for v in ["10.5", "21", "400", "1", "2"] {
            assert!(svg.contains(&format!("data-value=\"{v}\"")), "{v}");
        }
        assert!(svg.contains("21.0 (20.0..23.5)") && svg.contains("class=\"range\""));
        assert!(svg.contains("holds: it is 2 &gt; 1") && svg.contains("FAILS: no"));
    }

    #[test]
    fn table_numbers_are_parsed_with_intervals() {
        assert_eq!(value("37.9"), Some((37.9, None)));
        assert_eq!(value("-1.5"), Some((-1.5, None)));
        assert_eq!(value("5.0 (4.0..6.5)"), Some((5.0, Some((4.0, 6.5)))));
        assert_eq!(value("RAID 0"), None);
        assert_eq!(value("inf"), None);
    }
}
