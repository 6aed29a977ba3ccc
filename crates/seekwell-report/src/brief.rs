//! First screens of lists: a line an item, or names side by side. All of it is behind `--details`.

use crate::style::{HEAD, NAME};
use crate::table::paint;
use seekwell_lab::demo::Demo;
use seekwell_sched::registry::{Layer, SchedulerInfo};
use seekwell_trace::FormatInfo;
use seekwell_workload::Workload;

/// Between columns.
const GAP: usize = 2;

/// Names side by side, row by row, as many as fit.
pub fn side_by_side(names: &[&str], width: usize) -> String {
    let longest = names.iter().map(|n| n.chars().count()).max();
    let longest = longest.unwrap_or(0);
    let columns = ((width + GAP) / (longest + GAP)).max(1);
    let mut out = String::new();
    for (i, name) in names.iter().enumerate() {
        if i > 0 && i % columns == 0 {
            end(&mut out);
        }
        paint(&mut out, name, NAME);
        let rest = longest + GAP - name.chars().count();
        out.extend(std::iter::repeat_n(' ', rest));
    }
    end(&mut out);
    out
}

fn end(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}

/// Of a sentence as many whole clauses as fit; all of it, if not even the first does.
fn clauses(text: &str, width: usize) -> &str {
    if text.chars().count() <= width {
        return text;
    }
    let mut depth = 0_usize;
    let mut best = None;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = ",;:".contains(c) && text[i + 1..].starts_with(' ');
        let opens = c == '(' && depth == 1 && i > 0;
        let ends = ends && depth == 0 && !goes_on(&text[i + 1..]);
        if (ends || opens) && text[..i].trim_end().chars().count() <= width {
            best = Some(i);
        }
    }
    best.map_or(text, |i| text[..i].trim_end())
}

/// Is it the end of a list of words ("polars and DuckDB"), and no clause?
fn goes_on(rest: &str) -> bool {
    let next = rest
        .trim_start()
        .split([',', ';', ':', '('])
        .next()
        .unwrap_or(rest);
    next.contains(" and ") && next.split_whitespace().count() <= 4
}

/// A line for each: its name, a fact of one or two words, what it does.
fn lines<'a>(items: impl Iterator<Item = (&'a str, &'a str, &'a str)>, width: usize) -> String {
    let items: Vec<_> = items.collect();
    let long = |s: &str| s.chars().count();
    let names = items.iter().map(|i| long(i.0)).max().unwrap_or(0);
    let facts = items.iter().map(|i| long(i.1)).max().unwrap_or(0);
    let room = width.saturating_sub(names + facts + 2 * GAP);
    let mut out = String::new();
    for (name, fact, text) in items {
        paint(&mut out, name, NAME);
        out.extend(std::iter::repeat_n(' ', names + GAP - long(name)));
        out += fact;
        let gap = if facts > 0 { GAP } else { 0 };
        out.extend(std::iter::repeat_n(' ', facts + gap - long(fact)));
        out += clauses(text, room);
        out.push('\n');
    }
    out
}

/// The schedulers of each layer.
pub fn schedulers(all: &[SchedulerInfo], width: usize) -> String {
    let mut out = String::new();
    for (layer, head) in [
        (Layer::Mq, "blk-mq, all queues since 5.0"),
        (Layer::Legacy, "single-queue, until 4.20"),
    ] {
        paint(&mut out, head, HEAD);
        out.push('\n');
        let of = all.iter().filter(|s| s.layer == layer);
        out += &lines(of.map(|s| (s.name, "", s.summary)), width);
    }
    out
}

/// Devices, a row or two for each kind.
pub fn devices(all: &[seekwell_device::Entry], width: usize) -> String {
    let kind = |e: &seekwell_device::Entry| e.name.split(':').next().map(str::to_owned);
    let groups = all.chunk_by(|a, b| kind(a) == kind(b));
    let names = |g: &[seekwell_device::Entry]| {
        let names: Vec<&str> = g.iter().map(|e| e.name.as_str()).collect();
        side_by_side(&names, width)
    };
    groups.map(names).collect()
}

/// Workloads.
pub fn workloads(all: &[&Workload], width: usize) -> String {
    lines(all.iter().map(|w| (w.name, "", w.summary)), width)
}

/// Trace formats: read, or written, too.
pub fn formats(all: &[FormatInfo], width: usize) -> String {
    let how = |f: &FormatInfo| match f.create {
        Some(_) => "read, written",
        None => "read",
    };
    lines(all.iter().map(|f| (f.name, how(f), f.summary)), width)
}

/// Demos by name.
pub fn demos<'a>(all: impl Iterator<Item = &'a Demo>, width: usize) -> String {
    let names: Vec<&str> = all.map(|d| d.name).collect();
    side_by_side(&names, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_clauses_are_kept_and_none_is_cut() {
        let text = "reads first (by class, mostly), then writes; never both: a rule";
        assert_eq!(clauses(text, 99), text);
        assert_eq!(
            clauses(text, 60),
            "reads first (by class, mostly), then writes; never both"
        );
        assert_eq!(clauses(text, 40), "reads first (by class, mostly)");
        assert_eq!(clauses(text, 20), "reads first");
        assert_eq!(clauses(text, 5), text, "nothing fits: all of it");
        assert_eq!(clauses("at 1:2,3 of all, or none", 20), "at 1:2,3 of all");
        let list = "rows, typed, for pandas, polars and DuckDB";
        assert_eq!(
            clauses(list, 30),
            "rows, typed",
            "a list of words is no clause"
        );
    }

    #[test]
    fn names_stand_side_by_side_and_none_is_lost() {
        let names = ["one", "three", "five", "seven"];
        let text = side_by_side(&names, 14);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(
            rows[0].contains("one") && rows[0].contains("three"),
            "{text}"
        );
        assert!(
            rows[1].contains("five") && rows[1].contains("seven"),
            "{text}"
        );
        assert_eq!(side_by_side(&names, 3).lines().count(), 4);
    }
}
