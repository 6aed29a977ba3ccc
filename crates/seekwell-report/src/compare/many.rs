//! Many tests on one screen: a line each, who is ahead in how many of them, and what to know. The
//! matrix and the verdict of each are behind `--details`.

use super::seeds::{ACROSS, Judged, alike, cell, flags, head, label, sure};
use super::{PROSE, hang};
use crate::style::{HEAD, WARN};
use crate::table::{Align, Cell, Table, paint, wrap};
use crate::verdict::{cpu_note, list};
use seekwell_core::prose::all_in_prose;
use seekwell_core::result::Record;
use seekwell_lab::analysis::{Ahead, CellAnalysis};

/// Remarks at most.
const REMARKS: usize = 2;
/// Tests that a verdict names at most; of more it tells the number.
const NAMED: usize = 3;

/// "bfq and kyber ahead", "level".
fn words(who: &Ahead, labels: &[String]) -> String {
    let labels = all_in_prose(labels);
    let name = |t: &usize| labels.get(*t).map_or("?", String::as_str);
    match who {
        Ahead::Who(who) => format!("{} ahead", list(&who.iter().map(name).collect::<Vec<_>>())),
        Ahead::Level => "level".to_owned(),
        Ahead::Open => "not decided".to_owned(),
    }
}

/// "bfq ahead in 3 of 7 (copy, mail and scan); level in 4 of 7"; `named`: with the tests, where
/// they are few.
fn verdict(rows: &[Judged], labels: &[String], named: bool) -> String {
    let mut said: Vec<(Ahead, Vec<&str>)> = Vec::new();
    for row in rows {
        let who = row.cell.ahead();
        match said.iter_mut().find(|s| s.0 == who) {
            Some(s) => s.1.push(&row.name),
            None => said.push((who, vec![&row.name])),
        }
    }
    said.sort_by_key(|s| std::cmp::Reverse(s.1.len()));
    let all = rows.len();
    let each: Vec<String> = said
        .iter()
        .map(|(who, tests)| {
            let what = words(who, labels);
            match tests.len() {
                n if named && n <= NAMED => format!("{what} in {n} of {all} ({})", list(tests)),
                n => format!("{what} in {n} of {all}"),
            }
        })
        .collect();
    format!("{}.", each.join("; "))
}

/// Remarks of the tests, the most frequent first.
fn remarks(rows: &[Judged], labels: &[String], width: usize) -> String {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for row in rows {
        for text in flags(row.cell, labels, false) {
            match said.iter_mut().find(|s| s.0 == text) {
                Some(s) => s.1.push(&row.name),
                None => said.push((text, vec![&row.name])),
            }
        }
    }
    said.sort_by_key(|s| std::cmp::Reverse(s.1.len()));
    let mut out = String::new();
    for (text, tests) in said.iter().take(REMARKS) {
        paint(&mut out, "  ! ", WARN);
        let whose = match tests.len() {
            n if n <= NAMED => tests.join(", "),
            n => format!("{n} tests"),
        };
        out += wrap(&format!("{whose}: {text}"), 4, width).trim_start();
    }
    if said.len() > REMARKS {
        paint(&mut out, "  ! ", WARN);
        out += &format!("and {} more remarks: --details\n", said.len() - REMARKS);
    }
    out
}

/// A line a test: as a matrix where so few columns do, else who is ahead.
fn table(rows: &[Judged], shown: usize, labels: &[String], width: usize) -> String {
    let same = |r: &Judged| {
        let sides = |c: &CellAnalysis| c.sides.iter().map(|s| s.treatment).collect::<Vec<_>>();
        sides(r.cell) == sides(rows[0].cell)
    };
    let groups = alike(rows);
    if rows.iter().all(same) && !groups.is_empty() && groups.len() <= ACROSS {
        let names: Vec<String> = groups.iter().map(|g| label(g, rows, labels)).collect();
        let mut of = vec![("TEST", Align::Left)];
        of.extend(names.iter().map(|n| (n.as_str(), Align::Right)));
        of.push(("+-", Align::Right));
        let mut t = Table::new(&of);
        for row in &rows[..shown] {
            let mut line: Vec<Cell> = vec![head(row).into()];
            line.extend(groups.iter().map(|g| cell(row.cell, g[0])));
            line.push(sure(row.cell).into());
            t.row(line);
        }
        if t.fits(2, width) {
            return t.render(2);
        }
    }
    let mut t = Table::new(&[("TEST", Align::Left), ("VERDICT", Align::Left)]);
    for row in &rows[..shown] {
        let who = words(&row.cell.ahead(), labels);
        t.row(vec![head(row).into(), who.into()]);
    }
    t.render_within(2, width)
}

/// All tests under one heading, in `lines` lines at most as long as one test has room. `records`: of
/// one seed, for what they tell of speed; none will do.
pub fn tests(
    rows: &[Judged],
    labels: &[String],
    heading: &str,
    records: &[Record],
    lines: usize,
    width: usize,
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let prose = width.min(PROSE);
    let top = hang(heading, 2, width);
    let end = |named: bool| {
        let mut end = String::new();
        paint(&mut end, "  Verdict: ", HEAD);
        end += wrap(&verdict(rows, labels, named), 11, prose).trim_start();
        if let Some(note) = cpu_note(records) {
            paint(&mut end, "  ! ", WARN);
            end += wrap(&note, 4, prose).trim_start();
        }
        end + &remarks(rows, labels, prose)
    };
    let rest = |shown: usize| match rows.len() - shown {
        0 => String::new(),
        n => format!("  and {n} more tests: --details\n"),
    };
    let whole = |shown: usize, named: bool| {
        let table = table(rows, shown, labels, width);
        format!("{top}{table}{}{}", rest(shown), end(named))
    };
    let fits = |text: &String| text.lines().count() <= lines;
    let all = whole(rows.len(), true);
    if fits(&all) {
        return all;
    }
    // A test more is never a line less: as many as fit are found in a few steps.
    let (mut some, mut least_too_many) = (1, rows.len() + 1);
    while some + 1 < least_too_many {
        let n = (some + least_too_many) / 2;
        match fits(&whole(n, false)) {
            true => some = n,
            false => least_too_many = n,
        }
    }
    whole(some, false)
}
