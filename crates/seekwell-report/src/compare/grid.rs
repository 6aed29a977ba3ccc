//! The table of a summary: one row per deciding metric, one column per scheduler, and the verdict
//! in words in the last column. If the words do not fit, each scheduler has a row, and each value
//! is followed by one word. If that needs too many lines, a row has only the best value and the
//! words.

use super::words::{Mark, phrases, word};
use crate::style::{GOOD, HEAD, PLAIN};
use crate::table::{Align, Cell, Table, painted};

/// A row of the table.
pub(super) struct Line {
    /// Device, if there are several devices.
    pub place: String,
    /// Workload.
    pub workload: String,
    /// Name of the deciding metric, if the workload has several.
    pub row: Option<String>,
    /// Unit of the values.
    pub unit: String,
    /// The value of each scheduler, or the limit that a run reached.
    pub values: Vec<Option<String>>,
    /// The mark of each scheduler.
    pub marks: Vec<Mark>,
    /// Precision: half the widest interval. Empty if each scheduler has a single run.
    pub sure: String,
}

/// Minimum width of the column of words, in characters.
const WORDS: usize = 18;
/// Maximum number of schedulers that are shown in columns.
const ACROSS: usize = 5;

impl Line {
    /// Returns the head of a row, for example "interactive, ms", or "  reader p99, ms" under a
    /// heading.
    fn head(&self, under: bool) -> String {
        let name = self.row.as_deref().unwrap_or(&self.workload);
        let unit = match self.unit.as_str() {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        let level = usize::from(under) * usize::from(!self.place.is_empty())
            + usize::from(under && self.row.is_some());
        match (under, &self.row) {
            (false, Some(row)) => format!("{}, {row}{unit}", self.workload),
            _ => format!("{}{name}{unit}", "  ".repeat(level)),
        }
    }
    fn value(&self, i: usize) -> String {
        let value = self.values.get(i).cloned().flatten();
        value.unwrap_or_else(|| "-".to_owned())
    }
    fn mark(&self, i: usize) -> Mark {
        self.marks.get(i).copied().unwrap_or(Mark::Missing)
    }
    fn style(&self, i: usize) -> anstyle::Style {
        let best = self.marks.contains(&Mark::Best);
        match self.mark(i) {
            Mark::Best | Mark::Same if best => GOOD,
            _ => PLAIN,
        }
    }
    /// Returns the longest form of the verdict that fits into `room` columns, or the shortest form
    /// if none fits.
    fn words(&self, names: &[String], sure: bool, room: usize) -> String {
        let mut all = phrases(&self.marks, names, &self.unit);
        let open = all.first().is_some_and(|p| p == "unclear");
        if sure && open && !self.sure.is_empty() {
            all.insert(0, format!("unclear, +-{}", self.sure));
        }
        let fits = |p: &&String| p.chars().count() <= room;
        let shortest = || all.iter().min_by_key(|p| p.chars().count());
        let best = all.iter().find(fits).or_else(shortest);
        best.cloned().unwrap_or_default()
    }
}

/// Returns the headings before a row: that of a device, or of a workload with several metrics.
fn headings(lines: &[Line], at: usize) -> Vec<(usize, &str)> {
    let (line, before) = (&lines[at], at.checked_sub(1).map(|i| &lines[i]));
    let mut out = Vec::new();
    let moved = before.is_none_or(|b| b.place != line.place);
    if moved && !line.place.is_empty() {
        out.push((0, line.place.as_str()));
    }
    let other = before.is_none_or(|b| b.workload != line.workload || b.row.is_none());
    if line.row.is_some() && (moved || other) {
        out.push((usize::from(!line.place.is_empty()), line.workload.as_str()));
    }
    out
}

/// Fills a table whose first column contains the names of the rows.
fn filled(mut t: Table, lines: &[Line], cells: impl Fn(&Line) -> Vec<Cell>) -> Table {
    for (i, line) in lines.iter().enumerate() {
        for (level, text) in headings(lines, i) {
            t.heading(painted(format!("{}{text}", "  ".repeat(level)), HEAD));
        }
        let mut row: Vec<Cell> = vec![line.head(true).into()];
        row.extend(cells(line));
        t.row(row);
    }
    t
}

/// Returns the indentation of the rows. With several devices, headings are further left than their
/// rows.
fn indent(lines: &[Line]) -> usize {
    let several = lines.iter().any(|l| !l.place.is_empty());
    if several { 0 } else { 2 }
}

/// Returns the table with one column per scheduler, and with the words at the end if there is
/// space.
fn across(lines: &[Line], names: &[String], width: usize) -> Option<Table> {
    let indent = indent(lines);
    let mut columns = vec![("WORKLOAD", Align::Left)];
    columns.extend(names.iter().map(|n| (n.as_str(), Align::Right)));
    let figures = |line: &Line| -> Vec<Cell> {
        let all = 0..names.len();
        all.map(|i| painted(line.value(i), line.style(i))).collect()
    };
    let plain = filled(Table::new(&columns), lines, figures);
    columns.push(("+-", Align::Right));
    let sure = filled(Table::new(&columns), lines, |l| {
        let mut all = figures(l);
        all.push(l.sure.as_str().into());
        all
    });
    let room = |t: &Table| width.saturating_sub(t.wide(indent) + 2);
    // The words are more important than the precision.
    let fit = |l: &Line| l.words(names, false, room(&sure)).chars().count() <= room(&sure);
    let sure_known = lines.iter().any(|l| !l.sure.is_empty());
    let with_sure = sure_known && room(&sure) >= WORDS && lines.iter().all(fit);
    let (t, room) = match with_sure {
        true => (&sure, room(&sure)),
        false => (&plain, room(&plain)),
    };
    let words = |l: &Line| l.words(names, !with_sure, room).into();
    (room >= WORDS && names.len() <= ACROSS)
        .then(|| t.clone().with("VERDICT", lines.iter().map(words).collect()))
}

/// Returns one row per scheduler, with a word after each value. The tables of devices are below
/// each other.
fn turned(lines: &[Line], names: &[String], width: usize) -> String {
    let mut out = String::new();
    for of_place in lines.chunk_by(|a, b| a.place == b.place) {
        let heads: Vec<String> = of_place.iter().map(|l| l.head(false)).collect();
        let mut columns = vec![("SCHEDULER", Align::Left)];
        columns.extend(heads.iter().map(|h| (h.as_str(), Align::Right)));
        let mut t = Table::new(&columns);
        if let Some(first) = of_place.first().filter(|l| !l.place.is_empty()) {
            t.heading(painted(first.place.as_str(), HEAD));
        }
        let longest = |l: &Line| {
            let words = l.marks.iter().map(|m| word(*m, &l.unit).chars().count());
            words.max().unwrap_or(0)
        };
        let longest: Vec<usize> = of_place.iter().map(longest).collect();
        for (i, name) in names.iter().enumerate() {
            let mut row: Vec<Cell> = vec![name.as_str().into()];
            row.extend(of_place.iter().zip(&longest).map(|(l, wide)| {
                let word = word(l.mark(i), &l.unit);
                painted(format!("{} {word:<wide$}", l.value(i)), l.style(i))
            }));
            t.row(row);
        }
        if of_place.iter().any(|l| !l.sure.is_empty()) {
            let mut row: Vec<Cell> = vec!["+-".into()];
            row.extend(of_place.iter().map(|l| Cell::from(l.sure.as_str())));
            t.row(row);
        }
        out += &t.render_fit(indent(lines), width, 1);
    }
    out
}

/// Returns a table with the best value and the words.
fn listed(lines: &[Line], names: &[String], width: usize) -> String {
    let best = |l: &Line| {
        let at = l.marks.iter().position(|m| *m == Mark::Best);
        at.map_or(String::new(), |i| l.value(i))
    };
    let columns = [("WORKLOAD", Align::Left), ("BEST", Align::Right)];
    let t = filled(Table::new(&columns), lines, |l| vec![best(l).into()]);
    let indent = indent(lines);
    let room = width.saturating_sub(t.wide(indent) + 2).max(WORDS);
    let words = |l: &Line| l.words(names, true, room).into();
    t.with("VERDICT", lines.iter().map(words).collect())
        .render_within(indent, width)
}

/// Returns the table in the first form that fits into `most` lines.
pub(super) fn grid(lines: &[Line], names: &[String], most: usize, width: usize) -> String {
    if let Some(t) = across(lines, names, width) {
        return t.render_within(indent(lines), width);
    }
    let each = turned(lines, names, width);
    match each.lines().count() <= most {
        true => each,
        false => listed(lines, names, width),
    }
}
