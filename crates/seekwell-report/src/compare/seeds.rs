//! Results over several seeds: the legend and last line of the table, verdicts in words, and signs
//! of noise.
//!
//! The lab computes every number and sentence, and this module formats them.

use super::{PROSE, also};
use crate::style::{GOOD, HEAD, PLAIN, WARN};
use crate::table::{Align, Table, paint, painted, wrap};
use crate::units::{bytes, count, three};
use crate::verdict;
use seekwell_core::prose::all_in_prose;
use seekwell_core::result::{Record, Starved};
use seekwell_lab::analysis::single::FEWEST;
use seekwell_lab::analysis::{CellAnalysis, Flag, Group, Longer, half_width, percent, size};

/// A row of the table: one deciding metric of a workload on a device, under all schedulers, over
/// several seeds.
#[derive(Clone)]
pub struct Judged<'a> {
    /// Device, if rows of several devices are shown together; otherwise empty.
    pub place: String,
    /// The shortest name that distinguishes the workload from the others.
    pub name: String,
    /// Name of the deciding metric, if the workload has several. Rows of the same workload are
    /// adjacent.
    pub row: Option<String>,
    /// The analysis of this metric.
    pub cell: &'a CellAnalysis,
}

impl<'a> Judged<'a> {
    /// Makes a row of a workload on the only device.
    pub fn new(name: String, cell: &'a CellAnalysis) -> Self {
        Judged {
            place: String::new(),
            name,
            row: (cell.rows > 1).then(|| cell.metric.name.to_string()),
            cell,
        }
    }
    /// Returns the name of the row, for example "hdd:hitachi-7k200: interactive" or "mail.fio
    /// reader p99".
    pub fn called(&self) -> String {
        let own = match &self.row {
            Some(row) => format!("{} {row}", self.name),
            None => self.name.clone(),
        };
        match self.place.as_str() {
            "" => own,
            place => format!("{place}: {own}"),
        }
    }
}

/// Maximum number of lines in a summary for other metrics, and for remarks.
const ALSO: usize = 2;
const FLAGS: usize = 3;

/// Describes the seeds, for example "5 seeds", "5 seeds from 7", "seed 1".
pub fn seeds(first: u64, n: usize) -> String {
    match n {
        0 | 1 => format!("seed {first}"),
        n if first == 1 => format!("{n} seeds"),
        n => format!("{n} seeds from {first}"),
    }
}

/// Returns the first line about runs on a model.
pub fn heading(r: &Record, seeds: &str) -> String {
    let d = &r.device;
    let size = bytes(d.capacity_sectors as f64 * 512.0);
    format!(
        "On a modelled disk, not one of yours: {} ({size}, {seeds})",
        d.spec
    )
}

/// Returns the name of one device among several, for example "hdd:st2000dm006".
pub fn place(r: &Record) -> String {
    r.device.spec.clone()
}

/// Returns half the widest interval of the comparisons with the best treatment.
pub(super) fn sure(cell: &CellAnalysis) -> String {
    if cell.exact {
        return "exact".to_owned();
    }
    let best = cell.best;
    let with_best = cell
        .pairs
        .iter()
        .filter(|p| Some(p.one) == best || Some(p.other) == best);
    let widest = with_best.filter_map(half_width).reduce(f64::max);
    match widest {
        None => "-".to_owned(),
        Some(h) if h < 0.000_05 => "0 %".to_owned(),
        Some(h) if h > 9.995 => "wide".to_owned(),
        Some(h) => percent(h),
    }
}

/// Returns ">600 s", or "2 of 10 >600 s" if other runs finished.
pub(super) fn at_limit(l: &Longer) -> String {
    let than = three(l.than_s);
    match l.runs == l.of {
        true => format!(">{than} s"),
        false => format!("{} of {} >{than} s", l.runs, l.of),
    }
}

/// Returns the meaning of the values and words in the table.
pub fn legend(margin: f64, width: usize) -> String {
    let text = format!(
        "Means over all runs. best, 1.04x slower: shown with 95 % confidence; same: within {} of the \
         best; unclear: it needs more runs. +-: half of the widest 95 % interval.",
        percent(margin)
    );
    let mut out = String::new();
    paint(
        &mut out,
        &wrap(&text, 2, width.min(PROSE)),
        crate::style::DIM,
    );
    out
}

/// Returns the last line: what the results are based on, and where their limits are described. With
/// `details`, all tables are shown, so the line does not mention `--details`.
pub fn foot(rests_on: &str, details: bool, width: usize) -> String {
    let more = if details { "" } else { " More: --details." };
    let text = format!("{rests_on} How far to trust it: docs/reading.md.{more}");
    wrap(&text, 0, width.min(PROSE))
}

/// Returns "Simulated with 6 seeds.", and names the schedulers that no current kernel has.
pub fn simulated(seeds: &str, records: &[Record]) -> String {
    let retired = super::retired(records);
    match retired.is_empty() {
        true => format!("Simulated with {seeds}."),
        false => format!("Simulated with {seeds}; {retired}."),
    }
}

/// Returns signs of noise in words: all of them, or those that a summary must show. The variation
/// between seeds is not one of them, because blocks account for it.
pub(super) fn flags(cell: &CellAnalysis, labels: &[String], all: bool) -> Vec<String> {
    let labels = all_in_prose(labels);
    let name = |t: &usize| labels.get(*t).map_or("?", String::as_str);
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    let mut starved: Vec<(Starved, usize, Vec<&str>)> = Vec::new();
    let first = |f: &Flag| {
        use Flag::{
            AtLimit, Fails, FewOperations, HostBusy, Moving, NotReached, Starved, TailDecides,
        };
        matches!(
            f,
            // All seeds together have enough operations, and the interval shows the precision.
            FewOperations { n, .. } if n.saturating_mul(cell.blocks as u64) < FEWEST
        ) || matches!(
            f,
            AtLimit { .. }
                | Starved { .. }
                | Fails { .. }
                | TailDecides { .. }
                | HostBusy { .. }
                | Moving { .. }
                | NotReached { .. }
        )
    };
    for flag in cell.flags.iter().filter(|f| all || first(f)) {
        let (words, who) = match flag {
            Flag::Outlier { treatment, blocks } => (
                format!("{} of {} runs are outliers", blocks.len(), cell.blocks),
                treatment,
            ),
            Flag::TwoModes {
                treatment,
                gap,
                share,
            } => (
                format!(
                    "two groups of runs, {} apart ({} in the smaller)",
                    percent(*gap),
                    percent(*share)
                ),
                treatment,
            ),
            Flag::TailDecides { treatment } => (
                "outliers drive the mean: mean and median disagree".to_owned(),
                treatment,
            ),
            Flag::MeansDiffer { treatment, ratio } => (
                format!("the ratio of plain means differs ({ratio:.3})"),
                treatment,
            ),
            Flag::FewOperations { treatment, n } => {
                let s = if *n == 1 { "" } else { "s" };
                (
                    format!("only {} operation{s} in a run", count(*n)),
                    treatment,
                )
            }
            Flag::AtLimit {
                treatment,
                runs,
                of,
                than_s,
            } => (
                format!(
                    "{runs} of {of} runs not finished after {} s (starved?)",
                    three(*than_s)
                ),
                treatment,
            ),
            Flag::Starved {
                treatment,
                runs,
                first,
            } => {
                let same = starved.iter_mut();
                match same.into_iter().find_map(|s| s.0.merge(first).then_some(s)) {
                    Some((_, most, who)) => {
                        *most = (*most).max(*runs);
                        who.push(name(treatment));
                    }
                    None => starved.push((first.clone(), *runs, vec![name(treatment)])),
                }
                continue;
            }
            Flag::Fails {
                treatment,
                failed,
                of,
            } => (format!("{failed} of {of} runs failed"), treatment),
            Flag::Trend { slope, .. } => {
                let text = format!("figures drift by {} per block", percent(*slope));
                said.push((text, Vec::new()));
                continue;
            }
            Flag::CarryOver { .. } => {
                said.push(("a run depends on the one before it".to_owned(), Vec::new()));
                continue;
            }
            Flag::NotReached { seconds } => {
                let text = format!(
                    "not in steady state: {seconds} s, half of a run, had to be left out as warm-up"
                );
                said.push((text, Vec::new()));
                continue;
            }
            Flag::HostBusy {
                treatment,
                runs,
                most,
            } => (
                format!(
                    "host busy: in {runs} of {} runs, other programs used CPU time, at most {} of it",
                    cell.blocks,
                    percent(*most)
                ),
                treatment,
            ),
            Flag::Moving { treatment, change } => (
                format!(
                    "not in steady state: figures still moved by {} when a run ended",
                    percent(*change)
                ),
                treatment,
            ),
            // These signs are contained in the interval, which is shown.
            Flag::Spread { .. } | Flag::Step { .. } => continue,
        };
        match said.iter_mut().find(|s| s.0 == words) {
            Some(s) => s.1.push(name(who)),
            None => said.push((words, vec![name(who)])),
        }
    }
    let starved = starved.into_iter().map(|(s, runs, who)| {
        let words = match cell.blocks {
            1 => s.words(),
            n if who.len() == 1 => format!("{} (in {runs} of {n} runs)", s.words()),
            n => format!("{} (in up to {runs} of {n} runs)", s.words()),
        };
        (words, who)
    });
    let said = starved.chain(said);
    let text = |(words, who): (String, Vec<&str>)| match who.is_empty() {
        true => words,
        false => format!("{}: {words}", who.join(", ")),
    };
    said.map(text).collect()
}

/// Returns the verdict on a cell: a sentence, then each comparison with the reference. With
/// `details`, it has all differences in other metrics and all remarks, not only those that fit one
/// screen.
pub fn judged(
    cell: &CellAnalysis,
    labels: &[String],
    seeds: &str,
    details: bool,
    width: usize,
) -> String {
    let name = |t: usize| labels.get(t).map_or("?", String::as_str);
    let prose = width.min(PROSE);
    let mut out = String::new();
    paint(&mut out, "  Verdict: ", HEAD);
    let by = match cell.metric.name.as_str() {
        "duration" => "time for the same work",
        name => name,
    };
    let visible = match cell.visible.filter(|_| !cell.exact) {
        Some(v) if v > 0.0 => format!(" A difference of {} would show.", percent(v)),
        _ => String::new(),
    };
    let n = cell.blocks;
    let over = match (seeds, n) {
        ("", 1) => "1 block".to_owned(),
        ("", n) => format!("{n} blocks"),
        (seeds, _) => seeds.to_owned(),
    };
    let text = format!("by {by}: {}. Over {over}.{visible}", cell.sentence);
    out += wrap(&text, 11, prose).trim_start();
    let reference = format!("AGAINST {}", name(cell.reference));
    let unit = &cell.metric.unit;
    let mean = if unit.is_empty() {
        "MEAN".to_owned()
    } else {
        format!("MEAN, {unit}")
    };
    let mut t = Table::new(&[
        ("SCHEDULER", Align::Left),
        ("N", Align::Right),
        (mean.as_str(), Align::Right),
        ("SD", Align::Right),
        ("BETTER IN", Align::Right),
        (reference.as_str(), Align::Left),
    ]);
    for side in &cell.sides {
        let c = cell.comparisons.iter().find(|c| c.one == side.treatment);
        let style = if cell.not_beaten.contains(&side.treatment) && !cell.level {
            GOOD
        } else {
            PLAIN
        };
        t.row(vec![
            painted(name(side.treatment), crate::style::NAME),
            side.n.to_string().into(),
            match &side.censored {
                Some(longer) => painted(at_limit(longer), WARN),
                None => painted(side.mean.map_or("-".to_owned(), three), style),
            },
            side.sd.map_or("-".to_owned(), three).into(),
            c.map_or(String::new(), |c| format!("{} of {}", c.ahead, c.n))
                .into(),
            c.map_or("(the reference)", |c| c.words.as_str()).into(),
        ]);
    }
    if n > 1 {
        let t = t.without(&["BETTER IN", "SD"], 2, width);
        out += &t.render_fit(2, width, 1);
        out +=
            &also::other_differences(cell, labels, if details { usize::MAX } else { ALSO }, prose);
    }
    let flags = flags(cell, labels, true);
    let mut used = 0;
    for (i, text) in flags.iter().enumerate() {
        let text = wrap(text, 4, prose);
        used += text.lines().count();
        paint(&mut out, "  ! ", WARN);
        if !details && used > FLAGS {
            out += &format!("and {} more remarks: --details\n", flags.len() - i);
            break;
        }
        out += text.trim_start();
    }
    out
}

/// Returns which part was removed as warm-up, if any, for example `10 s of interactive and
/// streams`.
pub fn warm_up<'a>(cells: impl Iterator<Item = &'a CellAnalysis>, width: usize) -> String {
    let mut said: Vec<(u32, bool, Vec<&str>)> = Vec::new();
    for cell in cells {
        let Some(warm) = cell.warm_up.as_ref().filter(|w| w.seconds > 0) else {
            continue;
        };
        match said
            .iter_mut()
            .find(|s| (s.0, s.1) == (warm.seconds, warm.found))
        {
            Some((_, _, names)) if names.contains(&&*cell.workload) => {}
            Some((_, _, names)) => names.push(&cell.workload),
            None => said.push((warm.seconds, warm.found, vec![&cell.workload])),
        }
    }
    if said.is_empty() {
        return String::new();
    }
    let each: Vec<String> = said
        .iter()
        .map(|(s, _, names)| format!("{s} s of {}", verdict::list(names)))
        .collect();
    let how = match said.iter().any(|s| s.1) {
        true => " (found from the first block, the same for all runs of a cell)",
        false => "",
    };
    let text = format!("Left out as warm-up: {}{how}.", each.join("; "));
    wrap(&text, 0, width.min(PROSE))
}

/// Returns the scores over all workloads of a device, in one sentence.
pub fn scores(group: &Group, labels: &[String], width: usize) -> String {
    scores_at("", group, labels, width)
}

/// Like [`scores`], with the name of the device.
pub fn scores_at(place: &str, group: &Group, labels: &[String], width: usize) -> String {
    let labels = all_in_prose(labels);
    let name = |t: usize| labels.get(t).map_or("?", String::as_str);
    if group.tests < 2 || group.scores.len() < 2 {
        return String::new();
    }
    let others = group
        .scores
        .iter()
        .filter(|s| s.treatment != group.reference);
    let each: Vec<String> = others
        .map(|s| {
            let (word, times) = match s.times < 1.0 {
                true => ("behind", 1.0 / s.times),
                false => ("ahead", s.times),
            };
            let half = s.times95.map(|(l, h)| (h / l).sqrt() - 1.0);
            let half = half.map_or(String::new(), |h| format!(" (+-{})", percent(h)));
            // A difference that is rounded to 0 % is not called a lead.
            match size(times).as_str() {
                "0 %" => format!("{} level{half}", name(s.treatment)),
                size => format!("{} {size} {word}{half}", name(s.treatment)),
            }
        })
        .collect();
    let beaten: Vec<&str> = group.not_beaten.iter().map(|t| name(*t)).collect();
    let kept = match beaten.len() {
        0 => String::new(),
        n if n == group.scores.len() => " Undefeated: all.".to_owned(),
        _ => format!(" Undefeated: {}.", beaten.join(", ")),
    };
    let used = group.tests;
    let text = format!(
        "{}ver all {used} workloads, against {}: {}.{kept}",
        match place {
            "" => "O".to_owned(),
            place => format!("{place}: o"),
        },
        name(group.reference),
        each.join(", ")
    );
    wrap(&text, 2, width.min(PROSE))
}
