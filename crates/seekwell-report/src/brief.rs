//! Short lists, and short descriptions of single items, that fit one screen. A list has one line
//! per item, or several names in a row. `--details` shows everything.

use crate::catalog;
use crate::compare::first::LINES;
use crate::style::{HEAD, NAME};
use crate::table::{Align, Table, paint, painted, wrap};
use seekwell_evidence::demo::Demo;
use seekwell_lab::import::Format;
use seekwell_sched::registry::{Layer, SchedulerInfo};
use seekwell_sched::tunable::{Kind, Tunable};
use seekwell_trace::FormatInfo;
use seekwell_workload::Workload;

/// Number of blanks between columns.
const GAP: usize = 2;

/// Arranges names in rows, as many per row as fit.
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

/// Returns the clauses at the start of a sentence that fit into the width. Returns the whole
/// sentence if even the first clause does not fit.
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

/// Returns whether the text continues a list of words ("polars and DuckDB"), so that no clause ends
/// before it.
fn goes_on(rest: &str) -> bool {
    let next = rest
        .trim_start()
        .split([',', ';', ':', '('])
        .next()
        .unwrap_or(rest);
    next.contains(" and ") && next.split_whitespace().count() <= 4
}

/// Formats one line per item: its name, a fact of one or two words, and its summary.
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

/// Lists the schedulers by layer.
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

/// Lists the devices, kind after kind. Columns would leave most of the screen empty, because the
/// names differ much in length.
pub fn devices(all: &[seekwell_device::Entry], width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for e in all {
        let next = if used == 0 { 0 } else { used + 2 };
        if next > 0 && next + e.name.len() > width {
            out.push('\n');
            used = 0;
        } else if next > 0 {
            out.push_str("  ");
            used = next;
        }
        paint(&mut out, &e.name, NAME);
        used += e.name.len();
    }
    out.push('\n');
    out
}

/// Lists the workloads with their summaries.
pub fn workloads(all: &[&Workload], width: usize) -> String {
    lines(all.iter().map(|w| (w.name, "", w.summary)), width)
}

/// Lists the trace formats, and whether Seekwell can write them.
pub fn formats(all: &[FormatInfo], width: usize) -> String {
    let how = |f: &FormatInfo| match f.create {
        Some(_) => "read, written",
        None => "read",
    };
    lines(all.iter().map(|f| (f.name, how(f), f.summary)), width)
}

/// Lists the formats that `import` reads.
pub fn imports(all: &[Format], width: usize) -> String {
    let mut t = Table::new(&[("FORMAT", Align::Left), ("WHAT IT IS", Align::Left)]);
    for f in all {
        t.row(vec![painted(f.name, NAME), f.summary.into()]);
    }
    t.render_within(0, width)
}

/// Lists the demos by name.
pub fn demos<'a>(all: impl Iterator<Item = &'a Demo>, width: usize) -> String {
    let names: Vec<&str> = all.map(|d| d.name).collect();
    side_by_side(&names, width)
}

/// A short description of one item: its summary, facts, and one line per entry.
struct First<'a> {
    name: &'a str,
    summary: &'a str,
    /// Headings, each with a sentence.
    told: Vec<(&'a str, String)>,
    entries: (&'a str, Vec<(&'a str, String, &'a str)>),
    rest: &'a str,
}

impl First<'_> {
    /// Returns at most `most` lines. An entry has its complete description if there is space, and
    /// otherwise only the part that fits into one line. Entries without space are listed by name.
    fn text(&self, most: usize, width: usize) -> String {
        let entries = &self.entries.1;
        let mut shown = entries.len();
        let none = vec![false; entries.len()];
        while shown > 0 && self.with(&none[..shown], width).lines().count() > most {
            shown -= 1;
        }
        let mut whole = vec![false; shown];
        for i in 0..shown {
            whole[i] = true;
            whole[i] = self.with(&whole, width).lines().count() <= most;
        }
        self.with(&whole, width)
    }

    /// Formats the first entries; `whole` says for each whether its description is complete.
    fn with(&self, whole: &[bool], width: usize) -> String {
        let mut out = String::new();
        paint(&mut out, self.name, NAME);
        let mut out = wrap(&format!("{out}: {}", self.summary), 0, width);
        for (what, text) in &self.told {
            let mut line = String::new();
            paint(&mut line, what, HEAD);
            let text = wrap(&format!("{line} {text}"), 4, width);
            out += &format!("  {}", text.trim_start());
        }
        let (what, entries) = &self.entries;
        let (some, others) = entries.split_at(whole.len());
        if !some.is_empty() {
            paint(&mut out, what, HEAD);
            out.push('\n');
        }
        let long = |s: &str| s.chars().count();
        let names = some.iter().map(|e| long(e.0)).max().unwrap_or(0);
        let facts = some.iter().map(|e| long(&e.1)).max().unwrap_or(0);
        let indent = names + facts + 3 * GAP;
        for ((name, fact, text), whole) in some.iter().zip(whole) {
            let mut line = "  ".to_owned();
            paint(&mut line, name, NAME);
            line.extend(std::iter::repeat_n(' ', names + GAP - long(name)));
            let text = match *whole || indent + long(text) <= width {
                true => wrap(text, indent, width),
                false => String::new(),
            };
            line += &format!("{fact:<facts$}  {}", text.trim_start());
            out += line.trim_end();
            out.push('\n');
        }
        if !others.is_empty() {
            let names: Vec<&str> = others.iter().map(|e| e.0).collect();
            out += &format!("  and {}", wrap(&names.join(", "), 4, width).trim_start());
        }
        out + &wrap(self.rest, 0, width)
    }
}

/// Returns the full page of a scheduler if it fits one screen, or else its tunables with their
/// defaults.
pub fn scheduler(s: &SchedulerInfo, version: &str, width: usize) -> String {
    let whole = catalog::scheduler(s, version, width);
    if whole.lines().count() <= LINES {
        return whole;
    }
    let all: Vec<&str> = s.versions.iter().map(|v| v.0).collect();
    let told = format!(
        "{} (here {version}), {}",
        all.join(", "),
        catalog::layer_name(s.layer)
    );
    let tunables = (s.tunables)(version).iter();
    let entry = |t: &'static Tunable| {
        let unit = if t.unit.is_empty() || t.kind == Kind::Bool {
            String::new()
        } else {
            format!(" {}", t.unit)
        };
        (t.name, format!("{}{unit}", t.default), t.help)
    };
    let first = First {
        name: s.name,
        summary: s.summary,
        told: vec![
            ("versions:", told),
            ("when not to use it:", s.not_when.to_owned()),
        ],
        entries: ("TUNABLES, by their defaults", tunables.map(entry).collect()),
        rest: "Their ranges, history, every rule with the kernel's function, source: --details.",
    };
    first.text(LINES, width)
}

/// Returns the full page of a workload if it fits one screen, or else its metric and parameters.
pub fn workload(w: &Workload, width: usize) -> String {
    let whole = crate::workload::page(w, width);
    if whole.lines().count() <= LINES {
        return whole;
    }
    let mut told = vec![
        ("metric:", w.metric.to_owned()),
        ("stresses:", w.stresses.to_owned()),
    ];
    if !w.profiles.is_empty() {
        let names: Vec<&str> = w.profiles.iter().map(|p| p.name).collect();
        told.push(("profile=", names.join(", ")));
    }
    let entry = |p: &seekwell_workload::Param| (p.name, p.default.to_owned(), p.summary);
    let first = First {
        name: w.name,
        summary: w.summary,
        told,
        entries: (
            "PARAMETERS, by their defaults",
            w.params.iter().map(entry).collect(),
        ),
        rest: "Their ranges, what profiles set, source: --details.",
    };
    first.text(LINES, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shortened_at_clause_ends() {
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
    fn names_are_laid_out_in_columns_without_loss() {
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
