//! What a demo shows.

use crate::style::{BAD, DIM, GOOD, HEAD, NAME};
use crate::table::{Align, Table, paint, painted, wrap};
use seekwell_lab::analysis::may_still_happen;
use seekwell_lab::demo::{Demo, Shown};

/// One line a demo.
pub fn list<'a>(all: impl Iterator<Item = &'a Demo>, width: usize) -> String {
    let mut t = Table::new(&[("NAME", Align::Left), ("WHAT IT SHOWS", Align::Left)]);
    for d in all {
        t.row(vec![painted(d.name, NAME), d.claim.into()]);
    }
    t.render_within(0, width)
}

/// Claim, setting, numbers, and whether the claims hold.
pub fn shown(demo: &Demo, s: &Shown, width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, demo.name, HEAD);
    out.push('\n');
    out += &wrap(demo.claim, 2, width);
    out += &wrap(&s.setting, 2, width);
    let columns: Vec<(&str, Align)> = s
        .columns
        .iter()
        .enumerate()
        .map(|(i, c)| (c.as_str(), if i == 0 { Align::Left } else { Align::Right }))
        .collect();
    let mut t = Table::new(&columns);
    for row in &s.rows {
        t.row(row.iter().map(|c| c.as_str().into()).collect());
    }
    out.push('\n');
    out += &t.render(2);
    out.push('\n');
    for (words, holds) in &s.checks {
        let (mark, style) = if *holds {
            ("  holds: ", GOOD)
        } else {
            ("  FAILS: ", BAD)
        };
        paint(&mut out, mark, style);
        out += wrap(words, 9, width).trim_start();
    }
    if s.seeds > 1 {
        let text = format!(
            "Over {} seeds, and of the model: {}.",
            s.seeds,
            may_still_happen(s.seeds)
        );
        out.push('\n');
        paint(&mut out, &wrap(&text, 2, width), DIM);
    }
    out
}
