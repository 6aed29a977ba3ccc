//! Compares device models with published figures: as a table in the terminal, and as the page
//! `docs/devices-validation.md`.

use crate::style::{BAD, HEAD, NAME, WARN};
use crate::table::{Align, Cell, Table, paint, painted, wrap};
use crate::units::{percent, signed_percent, three};
use seekwell_evidence::validation::{Bound, Group, Relation, Row};

/// A group of figures with the measured rows.
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
        // "13 x" is clearer than "+1234 %".
        e if e > 9.0 => format!("{:.0} x", e + 1.0),
        e => signed_percent(e * 100.0, 1),
    }
}

fn bound(r: &Row) -> String {
    match r.figure.bound.share() {
        a if a.is_finite() => percent(a * 100.0, 1),
        _ => "none".to_owned(),
    }
}

/// Returns the origin of the bound, in one word.
fn from(r: &Row) -> &'static str {
    match r.figure.bound {
        Bound::Rule(_) => "rule",
        Bound::Range => "range",
        Bound::After(_) => "after",
        Bound::Any => "",
    }
}

fn counted(rows: &[Row], relation: Relation) -> usize {
    rows.iter()
        .filter(|r| r.figure.relation == relation)
        .count()
}

/// Returns a summary: the number of figures by kind, and for how many figures the errors of the
/// model and of the null model are within the bound.
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
        .filter(|r| r.figure.bound.share().is_finite())
        .collect();
    let within = |f: &dyn Fn(&Row) -> f64| {
        let ok = |r: &&&Row| f(r).abs() <= r.figure.bound.share();
        bounded.iter().filter(ok).count()
    };
    let after = |r: &&Row| matches!(r.figure.bound, Bound::After(_));
    let all = bounded.iter().copied();
    let after: Vec<&Row> = all.filter(after).collect();
    let held_out = |r: &&&Row| r.figure.relation == Relation::HeldOut;
    let chosen = match after.len() {
        0 => String::new(),
        n => format!(
            " {n} of these bounds ({} of held-out figures) were chosen after the measurement.",
            after.iter().filter(held_out).count()
        ),
    };
    format!(
        "{} figures ({}). {} of them have a bound. The error of the model is within the bound for {} \
         figures, and the error of the null model for {}.{chosen}",
        rows.len(),
        kinds.join(", "),
        bounded.len(),
        within(&Row::error),
        within(&Row::null_error),
    )
}

/// Returns the rule for the bounds of a group, as a sentence.
fn rule(group: &Group) -> String {
    match group.rule {
        "" => String::new(),
        rule => format!(
            "The largest accepted error of a figure whose bound comes from the rule is {rule}."
        ),
    }
}

/// Formats the median of errors.
fn typical(errors: &[f64]) -> String {
    match seekwell_stats::median(errors) {
        Some(e) => percent(e * 100.0, 1),
        None => "-".to_owned(),
    }
}

/// Returns the summary, which fits one screen: one line per table, and the figures beyond their
/// bounds.
pub fn in_brief(tables: &[Measurements], width: usize) -> String {
    let mut t = Table::new(&[
        ("TABLE", Align::Left),
        ("FIGURES", Align::Right),
        ("BOUND", Align::Right),
        ("KEPT", Align::Right),
        ("NULL", Align::Right),
        ("HELD OUT", Align::Right),
        ("ERROR", Align::Right),
        ("NULL", Align::Right),
    ]);
    let mut misses = Vec::new();
    for (group, rows) in tables {
        let bounded = rows.iter().filter(|r| r.figure.bound.share().is_finite());
        let within = |f: fn(&Row) -> f64| {
            let all = bounded.clone();
            all.filter(|r| f(r).abs() <= r.figure.bound.share()).count()
        };
        let out = rows
            .iter()
            .filter(|r| r.figure.relation == Relation::HeldOut);
        let errors =
            |f: fn(&Row) -> f64| typical(&out.clone().map(|r| f(r).abs()).collect::<Vec<_>>());
        misses.extend(rows.iter().filter(|r| !r.holds()));
        t.row(vec![
            group.title.into(),
            rows.len().to_string().into(),
            bounded.clone().count().to_string().into(),
            within(Row::error).to_string().into(),
            within(Row::null_error).to_string().into(),
            out.clone().count().to_string().into(),
            errors(Row::error).into(),
            errors(Row::null_error).into(),
        ]);
    }
    let mut text = t.render_within(0, width);
    text += &match misses.len() {
        0 => "No figure misses its bound.\n".to_owned(),
        _ => misses
            .iter()
            .map(|r| {
                let (f, e) = (r.figure, error(r.error()));
                wrap(
                    &format!("MISSES: {}, {}: {e}", f.device, f.figure),
                    0,
                    width,
                )
            })
            .collect(),
    };
    let all = tables.iter().flat_map(|t| &t.1);
    let after = all.filter(|r| matches!(r.figure.bound, Bound::After(_)));
    text += &wrap(
        &format!(
            "{} bounds, among them those of held-out figures, were chosen after the measurement: \
             they show only that an error has not grown.",
            after.count()
        ),
        0,
        width,
    );
    text + &wrap(
        "FIGURES: published figures; BOUND: figures with a bound; KEPT: figures for which the \
         model is within the bound; NULL: figures for which the null model is within the bound. \
         The null model is a device of constant latency with the correct mean of random 4 KiB \
         reads. HELD OUT: figures never used for fitting; ERROR, NULL: their median error in the \
         model and in the null model. Every figure: --details; with its source: --markdown.",
        0,
        width,
    )
}

fn error_cell(r: &Row) -> Cell {
    match r.holds() {
        true => error(r.error()).into(),
        false => painted(format!("{} MISSES", error(r.error())), BAD),
    }
}

/// Explanation of the columns.
const LEGEND: &str = "ERROR is the distance from the nearer end of the published range. BOUND is \
    the largest accepted error. FROM says where the bound comes from: rule, one bound for all \
    figures of a kind, whatever their errors are; range, no error outside the published range; \
    after, chosen after the measurement. A bound of the kind \"after\" can only show that the \
    error has not grown. For a held-out figure it is the first computed error plus 3 points. KIND \
    is the use of the figure: fitted, a parameter was set to match the figure; circular, the \
    figure follows from a parameter by the maker's own formula; held out, the figure is never used \
    for fitting; prediction, the figure is compared with another implementation; indicative, the \
    figure was published under conditions that are too vague for a bound. NULL is the error of a \
    null model in the same measurement. The null model is a device with constant latency, which is \
    the mean latency of random 4 KiB reads on the device.";

/// Returns all tables for a terminal.
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
            ("FROM", Align::Left),
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
                from(r).into(),
                kind,
                error(r.null_error()).into(),
            ]);
        }
        out += &t.render_fit(2, width, 2);
        out += &wrap(&format!("{} {}", rule(group), summary(rows)), 2, width);
        out.push('\n');
    }
    out + &wrap(LEGEND, 0, width)
}

/// Returns the page in Markdown.
pub fn markdown(tables: &[Measurements]) -> String {
    let mut out = "# Device models compared with published figures\n\nGenerated by `make docs`; a \
         test compares it with the models. If the model misses a held-out figure, no parameter is \
         changed, because that would be fitting. `seekwell devices --validate` prints the same \
         tables.\n\n"
        .to_owned();
    out += &wrap(LEGEND, 0, 100);
    for (group, rows) in tables {
        out += &format!("\n## {}\n\n", group.title);
        out += &wrap(group.note, 0, 100);
        if !group.rule.is_empty() {
            out += &format!("\n{}", wrap(&rule(group), 0, 100));
        }
        out += &format!("\n{}\n", wrap(&summary(rows), 0, 100));
        out += "| device | figure | published | model | error | bound | bound from | kind | null model | source |\n\
                |---|---|---:|---:|---:|---:|---|---|---:|---|\n";
        for r in rows {
            let f = r.figure;
            let miss = if r.holds() { "" } else { " **misses**" };
            out += &format!(
                "| `{}` | {} | {} {} | {} | {}{miss} | {} | {} | {} | {} ({}) | {} |\n",
                f.device,
                f.figure,
                published(r),
                f.unit,
                three(r.model),
                error(r.error()),
                bound(r),
                f.bound.origin(),
                f.relation.text(),
                three(r.null),
                error(r.null_error()),
                f.source
            );
        }
    }
    out
}
