//! The contents of a trace on a terminal, in Markdown, and as an HTML page. The sentences and
//! values are the same in all three.

mod page;
mod picture;
mod words;

pub use page::page;

use crate::names;
use crate::style::{DIM, HEAD};
use crate::table::{Align, Table, paint, wrap};
use crate::units::{bytes, count, percent, share, three, time_ns};
use seekwell_core::units::SECTOR_BYTES;
use seekwell_trace::survey::{SEEK_CLASSES, Seeks, Spread, Survey};

/// Maximum number of lines of the summary.
const SCREEN: usize = 24;

/// A table without formatting: heads with their alignment, and rows.
pub(crate) struct Grid {
    pub title: &'static str,
    pub heads: Vec<(&'static str, Align)>,
    pub rows: Vec<Vec<String>>,
}

fn right(heads: &[&'static str]) -> Vec<(&'static str, Align)> {
    let lean = |i| if i == 0 { Align::Left } else { Align::Right };
    heads
        .iter()
        .enumerate()
        .map(|(i, h)| (*h, lean(i)))
        .collect()
}

fn ns(spread: Option<&Spread>, of: fn(&Spread) -> f64) -> String {
    spread.map_or_else(|| "-".to_owned(), |s| time_ns(of(s)))
}

fn kinds(s: &Survey) -> Grid {
    let row = |k: &seekwell_trace::survey::KindPart| {
        let (l, d) = (k.latency.as_ref(), k.service.as_ref());
        vec![
            k.kind.clone(),
            count(k.n),
            match k.bytes {
                0 => "-".to_owned(),
                b => bytes(b as f64),
            },
            match k.bytes {
                0 => "-".to_owned(),
                b => bytes(b as f64 / k.n.max(1) as f64),
            },
            share(k.sync, k.n),
            ns(l, |l| l.mean_ns),
            ns(l, |l| l.p50_ns as f64),
            ns(l, |l| l.p99_ns as f64),
            ns(l, |l| l.max_ns as f64),
            ns(d, |d| d.mean_ns),
        ]
    };
    Grid {
        title: "I/O by kind, and latency",
        heads: right(&[
            "KIND",
            "COUNT",
            "BYTES",
            "EACH",
            "SYNC",
            "MEAN",
            "P50",
            "P99",
            "MAX",
            "IN DEVICE",
        ]),
        rows: s.kinds.iter().map(row).collect(),
    }
}

fn phases(s: &Survey) -> Grid {
    // A trace without queue events has no times from Q to C.
    let shares = s.phases.iter().any(|p| p.share.is_some());
    let row = |p: &seekwell_trace::survey::Phase| {
        let of = &p.spread;
        let times = [
            of.min_ns as f64,
            of.mean_ns,
            of.p50_ns as f64,
            of.p99_ns as f64,
            of.max_ns as f64,
        ];
        let mut cells = vec![p.name.to_owned(), p.about.to_owned(), count(of.n)];
        cells.extend(times.map(time_ns));
        if shares {
            cells.push(p.share.map_or_else(String::new, |x| percent(100.0 * x, 1)));
        }
        cells
    };
    let mut heads = right(&["PHASE", "", "N", "MIN", "MEAN", "P50", "P99", "MAX"]);
    if shares {
        heads.push(("OF Q2C", Align::Right));
    }
    heads[1].1 = Align::Left;
    Grid {
        title: "Where the time goes",
        heads,
        rows: s.phases.iter().map(row).collect(),
    }
}

fn sectors(n: f64) -> String {
    match n {
        0.0 => "0".to_owned(),
        n => bytes(n * SECTOR_BYTES as f64),
    }
}

fn seeks(s: &Survey) -> Grid {
    let row = |name: &str, d: &Seeks| {
        vec![
            name.to_owned(),
            count(d.n),
            share(d.sequential, d.n),
            share(d.backwards, d.n),
            sectors(d.mean),
            sectors(d.median as f64),
            format!("{} ({})", sectors(d.mode as f64), share(d.mode_n, d.n)),
        ]
    };
    let mut rows = Vec::new();
    if s.queued {
        rows.push(row("as submitted", &s.seeks_queued));
    }
    if let Some(d) = &s.seeks_issued {
        rows.push(row("as issued", d));
    }
    Grid {
        title: "Seek distances",
        heads: right(&[
            "DISTANCES",
            "COUNT",
            "SEQUENTIAL",
            "BACKWARDS",
            "MEAN",
            "MEDIAN",
            "MOST OFTEN",
        ]),
        rows,
    }
}

fn classes(s: &Survey) -> Grid {
    let name = |i: usize| match i {
        0 => "none".to_owned(),
        i if i <= SEEK_CLASSES.len() => format!("< {}", binary(SEEK_CLASSES[i - 1])),
        _ => "more".to_owned(),
    };
    let row = |i: usize| {
        let of = |d: &Seeks| share(d.classes[i], d.n);
        let asked = Some(&s.seeks_queued).filter(|_| s.queued);
        let mut cells = vec![name(i), asked.map_or_else(|| "-".to_owned(), of)];
        cells.push(s.seeks_issued.as_ref().map_or_else(|| "-".to_owned(), of));
        cells
    };
    Grid {
        title: "Distances by class",
        heads: right(&["DISTANCE", "AS SUBMITTED", "AS ISSUED"]),
        rows: (0..=SEEK_CLASSES.len() + 1).map(row).collect(),
    }
}

fn binary(n: u64) -> String {
    match n {
        n if n >= 1 << 30 => format!("{} GiB", n >> 30),
        n if n >= 1 << 20 => format!("{} MiB", n >> 20),
        n => format!("{} KiB", n >> 10),
    }
}

fn sizes(s: &Survey) -> Grid {
    let row = |c: &seekwell_trace::survey::SizeClass| {
        vec![
            format!("up to {}", binary(c.bytes)),
            count(c.reads),
            count(c.writes),
            match s.merges.issued {
                0 => "-".to_owned(),
                _ => count(c.issued),
            },
        ]
    };
    Grid {
        title: "Sizes",
        heads: right(&["SIZE", "READS", "WRITES", "REQUESTS ISSUED"]),
        rows: s.sizes.iter().map(row).collect(),
    }
}

fn merges(s: &Survey) -> Option<Grid> {
    let m = &s.merges;
    if m.issued == 0 {
        return None;
    }
    let size = |n: f64| bytes(n * SECTOR_BYTES as f64);
    Some(Grid {
        title: "Merging",
        heads: right(&[
            "SUBMITTED",
            "ISSUED",
            "RATIO",
            "BACK MERGES",
            "FRONT MERGES",
            "REQUEUED",
            "SMALLEST",
            "MEAN",
            "LARGEST",
        ]),
        rows: vec![vec![
            count(m.queued),
            count(m.issued),
            format!("{:.2}", m.queued as f64 / m.issued as f64),
            count(m.back),
            count(m.front),
            count(m.requeued),
            size(m.issued_min as f64),
            size(m.issued_mean),
            size(m.issued_max as f64),
        ]],
    })
}

fn tasks(s: &Survey, most: usize) -> Grid {
    let all: u64 = s.tasks.iter().map(|t| t.read_bytes + t.write_bytes).sum();
    let row = |t: &seekwell_trace::survey::TaskShare| {
        let n = t.reads + t.writes;
        let name = match (t.pid, t.name.as_str()) {
            (None, _) => "not named".to_owned(),
            (Some(pid), "") => pid.to_string(),
            (Some(pid), name) => format!("{} {pid}", names::plain(name)),
        };
        let time = |x: f64| match t.completed {
            0 => "-".to_owned(),
            _ => time_ns(x),
        };
        vec![
            name,
            share(t.read_bytes + t.write_bytes, all),
            count(t.reads),
            count(t.writes),
            share(t.sequential, n),
            share(t.merged, n),
            time(t.mean_ns),
            time(t.max_ns as f64),
        ]
    };
    Grid {
        title: "Processes",
        heads: right(&[
            "PROCESS",
            "OF BYTES",
            "READS",
            "WRITES",
            "SEQUENTIAL",
            "MERGED",
            "MEAN",
            "MAX",
        ]),
        rows: s.tasks.iter().take(most).map(row).collect(),
    }
}

fn devices(s: &Survey) -> Option<Grid> {
    let row = |(name, n): &(String, u64)| vec![name.clone(), count(*n)];
    (s.devices.len() > 1).then(|| Grid {
        title: "Devices",
        heads: right(&["DEVICE", "SUBMITTED"]),
        rows: s.devices.iter().map(row).collect(),
    })
}

/// Returns all tables in their order.
fn grids(s: &Survey) -> Vec<Grid> {
    let mut all = vec![kinds(s), phases(s), seeks(s), classes(s), sizes(s)];
    all.extend(merges(s));
    all.push(tasks(s, 20));
    all.extend(devices(s));
    all.retain(|g| !g.rows.is_empty());
    all
}

impl Grid {
    fn table(&self) -> Table {
        let mut t = Table::new(&self.heads);
        for row in &self.rows {
            t.row(row.iter().map(|c| c.clone().into()).collect());
        }
        t
    }
    fn text(&self, width: usize) -> String {
        self.table()
            .without(
                &[
                    "SYNC",
                    "MIN",
                    "",
                    "MOST OFTEN",
                    "P50",
                    "MERGED",
                    "BACKWARDS",
                    "MAX",
                ],
                2,
                width,
            )
            .render(2)
    }
    fn markdown(&self) -> String {
        let cell = |c: &str| c.replace('|', "\\|").replace(['\n', '\r'], " ");
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = format!("### {}\n\n", self.title);
        let heads = self.heads.iter().map(|h| h.0.to_lowercase());
        out += &line(heads.collect());
        let lean = |a: Align| if a == Align::Right { "---:" } else { "---" };
        out += &line(self.heads.iter().map(|h| lean(h.1).to_owned()).collect());
        for row in &self.rows {
            out += &line(row.iter().map(|c| cell(&names::plain(c))).collect());
        }
        out + "\n"
    }
}

fn heading(s: &Survey) -> String {
    let events = if s.events { "events" } else { "records" };
    format!("{}: a {} trace ({events})", names::plain(&s.name), s.format)
}

fn head(s: &Survey, width: usize) -> String {
    let mut out = String::new();
    paint(&mut out, &heading(s), HEAD);
    out.push('\n');
    for sentence in words::sentences(s) {
        out += &wrap(&sentence, 2, width);
    }
    out
}

/// Returns the summary, which fits one screen: sentences, and the most important tables.
pub fn screen(s: &Survey, width: usize) -> String {
    let mut out = head(s, width);
    let grids = [kinds(s), phases(s), seeks(s)].into_iter();
    for grid in grids.filter(|g| !g.rows.is_empty()) {
        let text = grid.text(width);
        // On a narrow terminal, the sentences take more lines, so the last tables are omitted.
        if out.lines().count() + text.lines().count() < SCREEN {
            out += &text;
        }
    }
    let last = "All tables, the map of place and time: --details. A page: -o FILE.html";
    let room = SCREEN.saturating_sub(out.lines().count() + 1);
    if room > 1 && !s.tasks.is_empty() {
        out += &tasks(s, room - 1).text(width);
    }
    let mut line = String::new();
    paint(&mut line, last, DIM);
    out + &line + "\n"
}

/// Returns the complete report.
pub fn details(s: &Survey, width: usize) -> String {
    let mut out = head(s, width);
    for grid in grids(s) {
        out.push('\n');
        paint(&mut out, &format!("  {}", grid.title), HEAD);
        out.push('\n');
        out += &grid.text(width);
    }
    out.push('\n');
    out += &picture::text(s, width);
    for w in &s.warnings {
        out += &wrap(&format!("! {}", names::plain(w)), 2, width);
    }
    out
}

/// Returns the report for a pull request.
pub fn markdown(s: &Survey) -> String {
    let mut out = format!("## {}\n\n", names::escaped(&heading(s)));
    for sentence in words::sentences(s) {
        out += &format!("{}\n\n", names::escaped(&sentence));
    }
    for grid in grids(s) {
        out += &grid.markdown();
    }
    out += "### Place and time\n\n```\n";
    out += &anstream_free(&picture::text(s, 100));
    out += "```\n";
    for w in &s.warnings {
        out += &format!("\n- {}\n", names::escaped(w));
    }
    out
}

/// Removes styles from a text that is written to a file.
fn anstream_free(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(i) = rest.find('\u{1b}') {
        out += &rest[..i];
        rest = rest[i..].find('m').map_or("", |e| &rest[i + e + 1..]);
    }
    out + rest
}

/// Formats a number of operations per second.
pub(crate) fn iops(x: f64) -> String {
    three(x)
}

#[cfg(test)]
mod tests;
