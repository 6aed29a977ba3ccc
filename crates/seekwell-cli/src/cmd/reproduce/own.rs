//! Tables in the form of the publications: the systems, all metrics of a test, and the seconds of a
//! run with their standard deviation. Results are marked as noisy where the publication would mark
//! them.

use super::show::like;
use seekwell_core::numbers::signed;
use seekwell_evidence::reproduce::full::{Scaled, Scatter};
use seekwell_evidence::reproduce::{Cell, Reproduced, Reproduction, Second, systems};
use seekwell_lab::stats::{Better, delta_median, sd_cutoff};
use seekwell_report::table::Align;

/// Maximum number of rows in a table of seconds. In longer runs, a row covers several seconds.
const ROWS: usize = 30;

/// Text that follows a percentage of the median.
pub const OF_MEDIAN: &str = " of the median";

/// A table with a title.
pub struct Form {
    /// Title.
    pub title: String,
    /// Column titles and alignments.
    pub head: Vec<(String, Align)>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

/// Returns the deviation of each value from the median of all values as a text in per cent.
/// Positive means better. Comparisons of many schedulers were published in this form.
pub fn from_median(c: &Cell, of: impl Fn(usize) -> Option<f64>) -> Vec<String> {
    let n = c.published.sides.len();
    let values: Option<Vec<f64>> = (0..n).map(of).collect();
    let better = match c.published.higher_is_better {
        true => Better::Higher,
        false => Better::Lower,
    };
    let delta = values.filter(|_| n > 4);
    let delta = delta.and_then(|v| delta_median(&v, better));
    // A value that rounds to zero must not have a sign.
    let said = |d: &f64| format!(", {} %{OF_MEDIAN}", signed(*d, 1));
    delta.map_or(vec![String::new(); n], |d| {
        d.delta.iter().map(said).collect()
    })
}

/// Returns whether the published and the simulated standard deviation exceed the publication's
/// limit.
pub fn noisy(s: &Reproduced, c: &Cell, side: usize) -> (bool, bool) {
    let Some(limit) = s.publication.sd_cutoff else {
        return (false, false);
    };
    let above = |sd: Option<f64>| sd.is_some_and(|sd| sd_cutoff(&[sd], limit)[0]);
    let p = &c.published.sides[side];
    let ours = c.ours[side].and_then(|o| Some(o.se? * (o.n as f64).sqrt()));
    let theirs = p.error.filter(|_| p.kind_of_error == "SD");
    (above(theirs), above(ours))
}

/// Describes the publication's limit for noisy results, and how many results exceed it.
pub fn cut_off(s: &Reproduced) -> Option<String> {
    let limit = s.publication.sd_cutoff?;
    let sides = |c: &'_ Cell| c.published.sides.len();
    let all: Vec<(bool, bool)> = s
        .ours
        .cells
        .iter()
        .flat_map(|c| (0..sides(c)).map(|i| noisy(s, c, i)))
        .collect();
    let unit = s.ours.cells.first().map_or("", |c| &c.published.unit);
    let ours = match s.ours.repeats {
        0 | 1 => "our results are single runs without a standard deviation".to_owned(),
        _ => format!("{} of our figures", all.iter().filter(|a| a.1).count()),
    };
    Some(format!(
        "Noisy by the publication's limit, a standard deviation above {limit} {unit} (red in the \
         publication, (!) here): {} of {} published figures; {ours}.",
        all.iter().filter(|a| a.0).count(),
        all.len()
    ))
}

/// Returns the table of systems.
pub fn system_table(s: &Reproduced) -> Form {
    let head = ["SYSTEM", "PUBLISHED", "OUR DEVICE", "MODELLED"];
    let row =
        |s: seekwell_evidence::reproduce::System| vec![s.name, s.published, s.device, s.modelled];
    Form {
        title: "Systems".to_owned(),
        head: head.map(|h| (h.to_owned(), Align::Left)).to_vec(),
        rows: systems(s.publication).into_iter().map(row).collect(),
    }
}

/// Returns all metrics of a system in one table with one row per scheduler, as published.
pub fn one_table(r: &Reproduction) -> Option<Form> {
    let first = r.cells.first()?;
    let names = |c: &Cell| -> Vec<String> {
        c.published
            .sides
            .iter()
            .map(|s| s.scheduler.clone())
            .collect()
    };
    let own = names(first);
    let alike = |c: &Cell| c.published.system == first.published.system && names(c) == own;
    if r.cells.len() < 2 || !r.cells.iter().all(alike) {
        return None;
    }
    let mut head = vec![("SCHEDULER".to_owned(), Align::Left)];
    // A common unit is in the title. In each column title, it would make the table wider than 100
    // columns.
    let unit = &first.published.unit;
    let one_unit = r.cells.iter().all(|c| c.published.unit == *unit);
    for c in &r.cells {
        let p = &c.published;
        let metric = p.metric.to_uppercase();
        let name = match one_unit {
            true => metric,
            false => format!("{metric}, {}", p.unit),
        };
        head.push((name, Align::Right));
        head.push(("OURS".to_owned(), Align::Right));
    }
    let row = |i: usize| {
        let mut row = vec![own[i].clone()];
        for c in &r.cells {
            let digits = &c.published.sides[i].digits;
            row.push(digits.clone());
            row.push(c.ours[i].map_or("-".to_owned(), |o| like(digits, o.mean)));
        }
        row
    };
    Some(Form {
        title: match one_unit {
            true => format!("As published, {unit}"),
            false => "As published".to_owned(),
        },
        head,
        rows: (0..own.len()).map(row).collect(),
    })
}

/// Returns the table of seconds. Successive seconds are merged to limit the number of rows.
pub fn by_second(s: &Reproduced) -> Option<Form> {
    let kind = s.publication.by_second?;
    let last = s
        .seconds
        .iter()
        .flat_map(|s| s.seconds.last())
        .map(|s| s.at_s)
        .max()?;
    let first = s
        .seconds
        .iter()
        .flat_map(|s| s.seconds.first())
        .map(|s| s.at_s)
        .min()?;
    let step = (last - first + 1).div_ceil(ROWS as u64).max(1);
    let mut head = vec![("FROM, s".to_owned(), Align::Right)];
    for s in &s.seconds {
        head.push((format!("{}, {kind}s/s", s.scheduler), Align::Right));
        head.push(("MEAN +/- SD, ms".to_owned(), Align::Right));
    }
    let mut rows = Vec::new();
    for from in (first..=last).step_by(step as usize) {
        let mut row = vec![(from - first).to_string()];
        for s in &s.seconds {
            let within = |x: &&Second| (from..from + step).contains(&x.at_s);
            let own: Vec<Second> = s.seconds.iter().filter(within).copied().collect();
            match Second::together(&own) {
                Some(x) => row.extend([
                    (x.ops / step).to_string(),
                    format!("{:.2} +/- {:.2}", x.mean_ms, x.sd_ms),
                ]),
                None => row.extend(["0".to_owned(), "-".to_owned()]),
            }
        }
        rows.push(row);
    }
    let each = match step {
        1 => "every second".to_owned(),
        n => format!("{n} seconds per row"),
    };
    Some(Form {
        title: format!("Latency of a {kind} in our runs, {each}: mean and standard deviation"),
        head,
        rows,
    })
}

fn heads(all: &[(&str, Align)]) -> Vec<(String, Align)> {
    all.iter().map(|h| (h.0.to_owned(), h.1)).collect()
}

/// Returns the deviation of the quick form from the full form, by test.
pub fn lost(s: &Reproduced) -> Option<Form> {
    let x = s.scaling.as_ref().filter(|x| x.tests.len() > 1)?;
    let two = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.2}"));
    let row = |t: &Scaled| {
        vec![
            t.test.clone(),
            t.figures.to_string(),
            two(t.median),
            two(t.largest),
            t.at.clone(),
        ]
    };
    Some(Form {
        title: "Deviation of the quick form: |ln (quick / full)|".to_owned(),
        head: heads(&[
            ("TEST", Align::Left),
            ("FIGURES", Align::Right),
            ("MEDIAN", Align::Right),
            ("LARGEST", Align::Right),
            ("AT", Align::Left),
        ]),
        rows: x.tests.iter().map(row).collect(),
    })
}

/// Returns the scatter of the published and the simulated runs.
pub fn scattered(s: &Reproduced) -> Option<Form> {
    let runs = s.scatter.iter().map(|x| x.runs).max()?;
    let of = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{:.2} %", 100.0 * x));
    let row = |x: &Scatter| {
        vec![
            x.system.clone(),
            x.figures.to_string(),
            of(x.published),
            of(x.ours),
            x.same.to_string(),
        ]
    };
    Some(Form {
        title: format!(
            "Scatter: median standard error divided by the mean; ours of {runs} runs of the full \
             form"
        ),
        head: heads(&[
            ("SYSTEM", Align::Left),
            ("FIGURES", Align::Right),
            ("PUBLISHED", Align::Right),
            ("OURS", Align::Right),
            ("EQUAL IN ALL RUNS", Align::Right),
        ]),
        rows: s.scatter.iter().map(row).collect(),
    })
}

/// Returns all tables of a publication.
pub fn forms(s: &Reproduced) -> Vec<Form> {
    let mut all = vec![system_table(s)];
    all.extend(one_table(&s.ours));
    all.extend(by_second(s));
    all.extend(lost(s));
    all.extend(scattered(s));
    all
}
