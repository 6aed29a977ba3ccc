//! The models beside published figures: as a table in the terminal, and as the page
//! `docs/devices-validation.md`.

use crate::style::{BAD, HEAD, NAME, WARN};
use crate::table::{Align, Cell, Table, paint, painted, wrap};
use crate::units::three;
use seekwell_lab::validation::{Group, Relation, Row};

/// A table with its measured rows.
pub type Measurements = (&'static Group, Vec<Row>);

fn published(r: &Row) -> String {
    let (lo, hi) = r.figure.published;
    if lo == hi {
        format!("{lo}")
    } else {
        format!("{lo} to {hi}")
    }
}

fn error(share: f64) -> String {
    match share {
        e if e.abs() < 0.0005 => "0".to_owned(),
        // "+1234 %" says no more than "13 x".
        e if e > 9.0 => format!("{:.0} x", e + 1.0),
        e => format!("{:+.1} %", e * 100.0),
    }
}

fn bound(r: &Row) -> String {
    match r.figure.allowed {
        a if a.is_finite() => format!("{:.1} %", a * 100.0),
        _ => "none".to_owned(),
    }
}

fn counted(rows: &[Row], relation: Relation) -> usize {
    rows.iter()
        .filter(|r| r.figure.relation == relation)
        .count()
}

/// "24 figures: 8 fitted, ...; all within their bounds; the null model is within 3 of 20".
fn summary(rows: &[Row]) -> String {
    const ORDER: [Relation; 5] = [
        Relation::Fitted,
        Relation::HeldOut,
        Relation::Circular,
        Relation::Prediction,
        Relation::Indicative,
    ];
    let kinds: Vec<String> = ORDER
        .iter()
        .map(|&k| (counted(rows, k), k.text()))
        .filter(|c| c.0 > 0)
        .map(|(n, text)| format!("{n} {text}"))
        .collect();
    let bounded: Vec<&Row> = rows
        .iter()
        .filter(|r| r.figure.allowed.is_finite())
        .collect();
    let within = |f: &dyn Fn(&Row) -> f64| {
        let ok = |r: &&&Row| f(r).abs() <= r.figure.allowed;
        bounded.iter().filter(ok).count()
    };
    format!(
        "{} figures ({}). Of {} with a bound the model is within {}, the null model within {}.",
        rows.len(),
        kinds.join(", "),
        bounded.len(),
        within(&Row::error),
        within(&Row::null_error),
    )
}

fn error_cell(r: &Row) -> Cell {
    match r.holds() {
        true => error(r.error()).into(),
        false => painted(format!("{} MISSES", error(r.error())), BAD),
    }
}

/// What the columns mean.
const LEGEND: &str = "ERROR: from the nearer end of what is published; BOUND: largest error \
    accepted. KIND: fitted, a parameter was set to meet the figure; circular, it follows from a \
    parameter by the maker's own formula; held out, never used for fitting, and never will be; \
    prediction, compared with another implementation; indicative, published under conditions too \
    vague for a bound. NULL: what a device of constant latency scores in the same measurement, \
    knowing only the mean of the device's random 4 KiB reads.";

/// For a terminal.
pub fn text(tables: &[Measurements], width: usize) -> String {
    let mut out = String::new();
    for (group, rows) in tables {
        paint(&mut out, group.title, HEAD);
        out.push('\n');
        let mut t = Table::new(&[
            ("DEVICE", Align::Left),
            ("FIGURE", Align::Left),
            ("PUBLISHED", Align::Right),
            ("MODEL", Align::Right),
            ("UNIT", Align::Left),
            ("ERROR", Align::Right),
            ("BOUND", Align::Right),
            ("KIND", Align::Left),
            ("NULL", Align::Right),
        ]);
        for r in rows {
            let kind = match r.figure.relation {
                Relation::HeldOut => painted("held out", WARN),
                k => k.text().into(),
            };
            t.row(vec![
                painted(r.figure.device.split(',').next().unwrap_or(""), NAME),
                r.figure.figure.into(),
                published(r).into(),
                three(r.model).into(),
                r.figure.unit.into(),
                error_cell(r),
                bound(r).into(),
                kind,
                error(r.null_error()).into(),
            ]);
        }
        out += &t.render_fit(2, width, 2);
        out += &wrap(&summary(rows), 2, width);
        out.push('\n');
    }
    out + &wrap(LEGEND, 0, width)
}

/// The page.
pub fn markdown(tables: &[Measurements]) -> String {
    let mut out = "# The device models beside published figures\n\n\
         Made by `make docs`; a test holds it to what the models do now. Nothing here is typed by \
         hand, and no parameter is changed because a held-out figure is missed: then it would be \
         fitted. `seekwell devices --validate` prints the same.\n\n"
        .to_owned();
    out += &wrap(LEGEND, 0, 100);
    for (group, rows) in tables {
        out += &format!("\n## {}\n\n", group.title);
        out += &wrap(group.note, 0, 100);
        out += &format!("\n{}\n", wrap(&summary(rows), 0, 100));
        out += "| device | figure | published | model | error | bound | kind | null model | source |\n\
                |---|---|---:|---:|---:|---:|---|---:|---|\n";
        for r in rows {
            let f = r.figure;
            let miss = if r.holds() { "" } else { " **misses**" };
            out += &format!(
                "| `{}` | {} | {} {} | {} | {}{miss} | {} | {} | {} ({}) | {} |\n",
                f.device,
                f.figure,
                published(r),
                f.unit,
                three(r.model),
                error(r.error()),
                bound(r),
                f.relation.text(),
                three(r.null),
                error(r.null_error()),
                f.source
            );
        }
    }
    out
}
