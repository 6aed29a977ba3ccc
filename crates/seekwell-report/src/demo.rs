//! The report of a demo.

use crate::compare::first::LINES;
use crate::style::{BAD, DIM, GOOD, HEAD, NAME};
use crate::table::{Align, Table, paint, painted, wrap};
use seekwell_evidence::demo::{Demo, Shown};
use seekwell_lab::analysis::may_still_happen;

/// Lists the demos, one line each.
pub fn list<'a>(all: impl Iterator<Item = &'a Demo>, width: usize) -> String {
    let mut t = Table::new(&[("NAME", Align::Left), ("WHAT IT SHOWS", Align::Left)]);
    for d in all {
        t.row(vec![painted(d.name, NAME), d.claim.into()]);
    }
    t.render_within(0, width)
}

/// Returns the claim, the setting, the numbers, and whether the claims hold. With `details`, the
/// number of lines is not limited. Otherwise the text fits one screen, with every failed claim and
/// as many other claims as fit.
pub fn shown(demo: &Demo, s: &Shown, details: bool, width: usize) -> String {
    let mut head = String::new();
    paint(&mut head, demo.name, HEAD);
    head.push('\n');
    head += &wrap(demo.claim, 2, width);
    head += &wrap(&s.setting, 2, width);
    head.push('\n');
    let (numbers, cut) = numbers(s, details, width);
    head += &numbers;
    head.push('\n');
    let said = |(words, holds): &(String, bool)| {
        let (mark, style) = match holds {
            true => ("  holds: ", GOOD),
            false => ("  FAILS: ", BAD),
        };
        let mut out = String::new();
        paint(&mut out, mark, style);
        out + wrap(words, 9, width).trim_start()
    };
    let mut all: String = s.checks.iter().map(said).collect();
    if s.seeds > 1 {
        let still = may_still_happen(s.seeds);
        let text = format!("Over {} seeds of the model: {still}.", s.seeds);
        all.push('\n');
        paint(&mut all, &wrap(&text, 2, width), DIM);
    }
    let lines = |text: &str| text.lines().count();
    if details || (!cut && lines(&head) + lines(&all) <= LINES) {
        return head + &all;
    }
    let mut out = head;
    s.checks
        .iter()
        .filter(|c| !c.1)
        .for_each(|c| out += &said(c));
    let mut left = 0;
    for check in s.checks.iter().filter(|c| c.1) {
        let text = said(check);
        match left == 0 && lines(&out) + lines(&text) < LINES {
            true => out += &text,
            false => left += 1,
        }
    }
    let mut more: Vec<String> = Vec::new();
    if left > 0 {
        let other = if left < s.checks.len() { "more " } else { "" };
        let noun = if left == 1 {
            "claim holds"
        } else {
            "claims hold"
        };
        more.push(format!("{left} {other}{noun}"));
    }
    if cut {
        more.push("ranges over the seeds are left out".to_owned());
    }
    if more.is_empty() {
        more.push(format!("over {} seeds", s.seeds));
    }
    paint(
        &mut out,
        &wrap(&format!("{}: --details", more.join("; ")), 2, width),
        DIM,
    );
    out
}

/// Returns the table, and whether its ranges over the seeds were omitted. If the table is too wide,
/// the ranges are omitted first.
fn numbers(s: &Shown, details: bool, width: usize) -> (String, bool) {
    let columns: Vec<(&str, Align)> = s
        .columns
        .iter()
        .enumerate()
        .map(|(i, c)| (c.as_str(), if i == 0 { Align::Left } else { Align::Right }))
        .collect();
    let table = |short: bool| {
        let cell = |c: &String| match (short, c.split_once(" (")) {
            (true, Some((mean, range))) if range.contains("..") => mean.to_owned(),
            _ => c.clone(),
        };
        let mut t = Table::new(&columns);
        for row in &s.rows {
            t.row(row.iter().map(|c| cell(c).into()).collect());
        }
        t
    };
    let whole = table(false);
    if details || whole.fits(2, width) {
        return (whole.render(2), false);
    }
    let (whole, short) = (whole.render(2), table(true).render(2));
    let cut = short != whole;
    (short, cut)
}
