//! Imported results as tables: how far one scheduler leads, and how certain this is.

use seekwell_core::numbers::signed;
use seekwell_lab::analysis::{Analysis, CellAnalysis, Comparison, column_order};
use seekwell_lab::results::Results;
use seekwell_lab::stats::{Better, Verdict};
use seekwell_report::style::{BAD, DIM, GOOD, HEAD, PLAIN};
use seekwell_report::table::{Align, Cell, Table, paint, painted, wrap};
use seekwell_report::units::three;

/// The results to show, with their analysis.
pub struct View<'a> {
    pub results: &'a Results,
    pub analysis: &'a Analysis,
    pub all_pairs: bool,
    pub width: usize,
}

/// Minimum width of a workload's name in the matrix, in characters.
const NAME_MIN: usize = 24;
/// Maximum width of a unit in the matrix, in characters.
const UNIT_MAX: usize = 12;

/// Shortens a name in its middle, because names of the same test differ at their ends.
fn shortened(name: &str, most: usize) -> String {
    let all: Vec<char> = name.chars().collect();
    if all.len() <= most {
        return name.to_owned();
    }
    let kept = most.saturating_sub(2);
    let (front, back) = (kept / 2, kept - kept / 2);
    let part = |c: &[char]| c.iter().collect::<String>();
    format!(
        "{}..{}",
        part(&all[..front]),
        part(&all[all.len() - back..])
    )
}

/// Returns the lead of `one` in per cent, positive if `one` is better.
fn gain(c: &Comparison, better: Better) -> Option<f64> {
    let times = c.times_better(better)?;
    // The sentences use the same rule: if `other` leads by 5 %, the lead of `one` is -5 %.
    Some(match times >= 1.0 {
        true => 100.0 * (times - 1.0),
        false => -100.0 * (1.0 / times - 1.0),
    })
}

/// Formats a comparison in a few characters: the lead and a mark for its significance.
fn brief(c: &Comparison, better: Better) -> Cell {
    let mark = match c.verdict {
        v if v.claims() => "!",
        Verdict::Identical | Verdict::IdenticalSoFar | Verdict::NoDifference => "=",
        Verdict::Hint => "~",
        _ if c.p.is_none() => "1",
        _ => "?",
    };
    let Some(gain) = gain(c, better) else {
        return format!("- {mark}").into();
    };
    let size = signed(gain, usize::from(gain.abs() < 9.95));
    let style = match (mark, gain > 0.0) {
        ("!", true) => GOOD,
        ("!", false) => BAD,
        _ => PLAIN,
    };
    painted(format!("{size} {mark}"), style)
}

/// Formats a p-value, for example "0.012", "2e-5".
fn p_text(p: Option<f64>) -> String {
    match p {
        None => "-".to_owned(),
        Some(p) if p >= 0.001 => format!("{p:.3}"),
        Some(p) => format!("{p:.0e}"),
    }
}

impl View<'_> {
    fn label(&self, treatment: usize) -> &str {
        self.analysis.treatments.get(treatment).map_or("", |t| t)
    }

    /// Returns the description of the files.
    pub fn head(&self, width: usize) -> String {
        let mut out = String::new();
        let r = self.results;
        paint(&mut out, &r.about.name, HEAD);
        let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let figures = |n| many(n, "published figure");
        let runs = match (r.runs.len(), r.summaries.len()) {
            (runs, 0) => many(runs, "run"),
            (0, n) => figures(n),
            (runs, n) => format!("{} and {}", many(runs, "run"), figures(n)),
        };
        out += &format!(
            " ({}): {}, {}, {runs}\n",
            r.about.source,
            many(r.cells.len(), "cell"),
            many(r.treatments.len(), "treatment")
        );
        if !r.about.description.is_empty() {
            out += &wrap(&r.about.description, 0, width);
        }
        out
    }

    /// Returns the cells grouped by device and machine, in the order of the files.
    fn places(&self) -> Vec<(String, Vec<&CellAnalysis>)> {
        let mut out: Vec<(String, Vec<&CellAnalysis>)> = Vec::new();
        for cell in &self.analysis.cells {
            let place = match cell.machine.as_str() {
                "" => cell.device.clone(),
                machine => format!("{machine} ({})", cell.device),
            };
            match out.iter_mut().find(|p| p.0 == place) {
                Some(p) => p.1.push(cell),
                None => out.push((place, vec![cell])),
            }
        }
        out
    }

    fn comparisons<'c>(&self, cell: &'c CellAnalysis) -> &'c [Comparison] {
        if self.all_pairs {
            &cell.pairs
        } else {
            &cell.comparisons
        }
    }

    /// Returns the matrix with one row per workload and one column per treatment.
    pub fn matrix(&self) -> String {
        let mut out = String::new();
        for (place, cells) in self.places() {
            out.push('\n');
            paint(&mut out, &place, HEAD);
            out.push('\n');
            let mut shown: Vec<usize> = cells
                .iter()
                .flat_map(|c| c.sides.iter().map(|s| s.treatment))
                .collect();
            shown.sort_unstable();
            shown.dedup();
            out += &self.table(&cells, &shown);
            if self.all_pairs {
                out += &self.pairs(&cells);
            }
        }
        out
    }

    /// Returns the significant differences over all cells, the largest first, in at most `lines`
    /// lines. It is for results whose cells do not fit on a screen.
    pub fn held(&self, lines: usize) -> String {
        let mut held: Vec<(f64, &CellAnalysis, &Comparison)> = Vec::new();
        for cell in &self.analysis.cells {
            let claims = self.comparisons(cell).iter();
            let claims = claims.filter(|c| c.verdict.claims());
            let size = |c: &Comparison| gain(c, cell.better()).map_or(0.0, f64::abs);
            held.extend(claims.map(|c| (size(c), cell, c)));
        }
        held.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut out = String::from("\n");
        if held.is_empty() {
            out += "No difference is significant over all cells. All cells: --details.\n";
            return out;
        }
        paint(
            &mut out,
            "Differences that are significant over all cells, the largest first\n",
            HEAD,
        );
        let whole = held.len() + 4 <= lines;
        let shown = match whole {
            true => held.len(),
            false => lines.saturating_sub(4).max(1),
        };
        let who = |c: &Comparison| format!("{} / {}", self.label(c.one), self.label(c.other));
        let widest = held[..shown].iter().map(|h| who(h.2).chars().count()).max();
        let room = self
            .width
            .saturating_sub(widest.unwrap_or(0) + 2 + 2 * 3 + 8);
        let mut t = Table::new(&[
            ("", Align::Left),
            ("%", Align::Right),
            ("WORKLOAD", Align::Left),
            ("WHERE", Align::Left),
        ]);
        for (_, cell, c) in &held[..shown] {
            let place = match cell.machine.as_str() {
                "" => &cell.device,
                machine => machine,
            };
            t.row(vec![
                who(c).into(),
                brief(c, cell.better()),
                shortened(&cell.workload, room * 3 / 5).into(),
                shortened(place, room * 2 / 5).into(),
            ]);
        }
        out += &t.render(2);
        out += &match held.len() - shown {
            0 => "  All cells: --details\n".to_owned(),
            n => format!("  and {n} more; all cells: --details\n"),
        };
        out
    }

    fn table(&self, cells: &[&CellAnalysis], shown: &[usize]) -> String {
        let heads: Vec<&str> = shown.iter().map(|t| self.label(*t)).collect();
        let mut columns = vec![("WORKLOAD", Align::Left), ("UNIT", Align::Left)];
        columns.extend(heads.iter().map(|h| (*h, Align::Right)));
        let mut t = Table::new(&columns);
        let units = cells
            .iter()
            .map(|c| c.metric.unit.chars().count().min(UNIT_MAX));
        let units = units.max().unwrap_or(0).max(4);
        // A mean, or a lead with its mark, takes at most nine characters.
        let others: usize = heads.iter().map(|h| h.chars().count().max(9) + 2).sum();
        let room = self.width.saturating_sub(others + units + 4).max(NAME_MIN);
        for cell in cells {
            let name = shortened(&cell.workload, room);
            let unit = shortened(&cell.metric.unit, UNIT_MAX);
            let mut row: Vec<Cell> = vec![name.into(), unit.into()];
            for treatment in shown {
                row.push(self.cell(cell, *treatment));
            }
            t.row(row);
        }
        t.render_fit(2, self.width, 2)
    }

    /// Returns the mean for the reference, and the lead over the reference for another treatment.
    fn cell(&self, cell: &CellAnalysis, treatment: usize) -> Cell {
        let side = cell.sides.iter().find(|s| s.treatment == treatment);
        let mean = side.and_then(|s| s.mean);
        if treatment == cell.reference {
            return mean.map_or("-".to_owned(), three).into();
        }
        let mut all = cell.comparisons.iter();
        match (all.find(|c| c.one == treatment), mean) {
            (Some(c), Some(_)) => brief(c, cell.better()),
            (_, Some(mean)) => three(mean).into(),
            _ => painted("-", DIM),
        }
    }

    /// Returns the significant comparisons of two treatments that are not the reference.
    fn pairs(&self, cells: &[&CellAnalysis]) -> String {
        let mut t = Table::new(&[
            ("PAIR", Align::Left),
            ("WORKLOAD", Align::Left),
            ("", Align::Left),
        ]);
        for cell in cells {
            let others = cell.pairs.iter().filter(|c| {
                c.one != cell.reference && c.other != cell.reference && c.verdict.claims()
            });
            for c in others {
                t.row(vec![
                    format!("{} / {}", self.label(c.one), self.label(c.other)).into(),
                    cell.workload.clone().into(),
                    c.words.clone().into(),
                ]);
            }
        }
        match t.is_empty() {
            true => String::new(),
            false => format!("\n{}", t.render_within(2, self.width)),
        }
    }

    /// Returns a table with one row per comparison.
    pub fn details(&self) -> String {
        let mut out = String::new();
        for (place, cells) in self.places() {
            out.push('\n');
            paint(&mut out, &place, HEAD);
            out.push('\n');
            for cell in cells {
                paint(&mut out, &format!("  {}\n", cell.workload), HEAD);
                out += &self.sides(cell);
                out += &self.lines(self.comparisons(cell));
                for other in &cell.secondary {
                    let metric = &other.metric;
                    out += &format!("  also measured: {} ({})\n", metric.name, metric.unit);
                    out += &self.lines(&other.comparisons);
                }
            }
        }
        out
    }

    fn sides(&self, cell: &CellAnalysis) -> String {
        let mut t = Table::new(&[
            ("", Align::Left),
            ("MEAN", Align::Right),
            ("SE", Align::Right),
            ("N", Align::Right),
            ("", Align::Left),
        ]);
        for s in &cell.sides {
            let se = s.se.or(s.sd.map(|sd| sd / (s.n.max(1) as f64).sqrt()));
            let failed = match s.failed {
                0 => cell.metric.unit.clone(),
                n => format!("{}, {n} failed", cell.metric.unit),
            };
            t.row(vec![
                self.label(s.treatment).into(),
                s.mean.map_or("-".to_owned(), three).into(),
                se.map_or("-".to_owned(), three).into(),
                s.n.to_string().into(),
                failed.into(),
            ]);
        }
        t.render(4)
    }

    fn lines(&self, all: &[Comparison]) -> String {
        let mut t = Table::new(&[
            ("", Align::Left),
            ("p", Align::Right),
            ("CELL", Align::Right),
            ("ALL", Align::Right),
            ("", Align::Left),
        ]);
        for c in all {
            let style = match (c.verdict.claims(), c.verdict) {
                (true, Verdict::Worse | Verdict::WorseMaybeSmall) => BAD,
                (true, _) => GOOD,
                _ => PLAIN,
            };
            t.row(vec![
                format!("{} / {}", self.label(c.one), self.label(c.other)).into(),
                p_text(c.p).into(),
                p_text(c.p_cell).into(),
                p_text(c.p_adjusted).into(),
                painted(c.words.clone(), style),
            ]);
        }
        t.render_within(4, self.width)
    }

    /// Returns the number of significant comparisons, the number expected by chance, and the
    /// meaning of the marks.
    pub fn foot(&self) -> String {
        let alpha = self.analysis.method.alpha;
        let all: Vec<&Comparison> = self
            .analysis
            .cells
            .iter()
            .flat_map(|c| self.comparisons(c))
            .collect();
        let holds = |p: fn(&Comparison) -> Option<f64>| {
            all.iter()
                .filter(|c| p(c).is_some_and(|p| p <= alpha))
                .count()
        };
        let tested = all.iter().filter(|c| c.p.is_some()).count();
        let margin = 100.0 * self.analysis.method.margin;
        let mut out = String::from("\n");
        if tested == 0 {
            out += "No difference can be tested, so only ratios are shown. A test needs single \
                    runs, or means with their errors and N.\n";
        } else {
            let kind = if self.all_pairs {
                "pairs"
            } else {
                "comparisons"
            };
            out += &format!(
                "Of {tested} {kind}, {} have p <= {alpha} ({:.0} expected by chance). After \
                 correction (Holm), {} are significant within their cell, {} over all cells.\n",
                holds(|c| c.p),
                alpha * tested as f64,
                holds(|c| c.p_cell),
                holds(|c| c.p_adjusted),
            );
        }
        out += &format!(
            "Per cent ahead (+) or behind (-): ! significant over all cells, ~ a hint, = no \
             difference within {margin} %, ? undecided, 1 only one run, or a mean without an \
             error. Explanations: --details.\n",
        );
        // The order of members in JSON is not the order of the runs.
        if !self.results.about.source.contains("json") {
            for o in column_order(self.analysis).iter().filter(|o| o.p < 0.05) {
                let mut names: Vec<&str> = o.treatments.iter().map(|t| self.label(*t)).collect();
                if o.worst_first > o.best_first {
                    names.reverse();
                }
                out += &format!(
                    "{}: {} of {} tests have the ranking {}, which is the order of the columns; \
                     {:.0} are expected by chance (p = {}). If the runs were made in that order, \
                     drift may be the cause.\n",
                    o.place,
                    o.best_first.max(o.worst_first),
                    o.cells,
                    names.join(" > "),
                    o.expected,
                    p_text(Some(o.p)),
                );
            }
        }
        out
    }
}
