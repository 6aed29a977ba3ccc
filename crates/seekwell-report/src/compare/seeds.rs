//! What several seeds say: a matrix with effect and certainty, verdicts in words, signs of noise.
//!
//! The lab makes every number and sentence; here they are set.

use super::{PROSE, also, hang};
use crate::style::{GOOD, HEAD, PLAIN, WARN};
use crate::table::{Align, Cell, Table, paint, painted, wrap};
use crate::units::{bytes, count, three};
use crate::verdict;
use seekwell_core::prose::all_in_prose;
use seekwell_core::result::{Record, Starved};
use seekwell_lab::analysis::single::on_files;
use seekwell_lab::analysis::{
    Ahead, CellAnalysis, Flag, Group, Longer, half_width, may_still_happen, percent, size,
};

/// A workload on a device, under all schedulers, over several seeds.
pub struct Judged<'a> {
    /// What ran, as short as tells it from the others.
    pub name: String,
    /// What may be said of it.
    pub cell: &'a CellAnalysis,
}

/// Schedulers in columns at most; more stand in rows.
pub(super) const ACROSS: usize = 5;
/// Lines at most, on a first screen, for what is seen in other metrics, and for remarks.
const ALSO: usize = 2;
const FLAGS: usize = 3;
/// Columns of a label at most, where it names several.
const LABEL: usize = 28;

/// "5 seeds", "5 seeds from 7", "seed 1".
pub fn seeds(first: u64, n: usize) -> String {
    match n {
        0 | 1 => format!("seed {first}"),
        n if first == 1 => format!("{n} seeds"),
        n => format!("{n} seeds from {first}"),
    }
}

/// First line of what ran on a model.
pub fn heading(r: &Record, seeds: &str) -> String {
    let d = &r.device;
    let size = bytes(d.capacity_sectors as f64 * 512.0);
    format!(
        "On a modelled disk, not one of yours: {} ({size}, {seeds})",
        d.spec
    )
}

/// Treatments that gave the same in every run of every cell, in order of their first.
pub(super) fn alike(rows: &[Judged]) -> Vec<Vec<usize>> {
    let sides = rows.first().map_or(0, |r| r.cell.sides.len());
    super::groups((0..sides).map(|s| {
        // Runs that reached their limit may differ in what they would have given.
        let of = |r: &Judged| {
            let s = r.cell.sides.get(s)?;
            let own = s.censored.map(|_| s.treatment);
            Some((s.values.clone(), s.failed, own))
        };
        rows.iter().map(of).collect::<Vec<_>>()
    }))
}

pub(super) fn label(group: &[usize], rows: &[Judged], labels: &[String]) -> String {
    let name = |s: &usize| {
        let treatment = rows[0].cell.sides[*s].treatment;
        labels.get(treatment).map_or("?", String::as_str)
    };
    let all = group.iter().map(name).collect::<Vec<_>>().join(" = ");
    match all.chars().count() {
        n if group.len() < 2 || n <= LABEL => all,
        _ => format!("{} and {} more", name(&group[0]), group.len() - 1),
    }
}

/// Workloads by schedulers on one device, with a verdict in a sentence each. `records`: of one
/// seed, for what they tell of speed; none will do.
pub fn matrix(
    rows: &[Judged],
    labels: &[String],
    heading: &str,
    records: &[Record],
    width: usize,
) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let groups = alike(rows);
    let names: Vec<String> = groups.iter().map(|g| label(g, rows, labels)).collect();
    let heads: Vec<String> = rows.iter().map(head).collect();
    let across = names.len() <= ACROSS && !first.cell.sides.is_empty();
    let mut out = hang(heading, 2, width);
    let sure: Vec<String> = rows.iter().map(|r| sure(r.cell)).collect();
    let (corner, columns) = match across {
        true => ("WORKLOAD", &names),
        false => ("SCHEDULER", &heads),
    };
    let mut of = vec![(corner, Align::Left)];
    of.extend(columns.iter().map(|c| (c.as_str(), Align::Right)));
    if across {
        of.push(("+-", Align::Right));
    }
    let mut t = Table::new(&of);
    if across {
        for (row, (head, sure)) in rows.iter().zip(heads.iter().zip(&sure)) {
            let mut line: Vec<Cell> = vec![head.as_str().into()];
            line.extend(groups.iter().map(|g| cell(row.cell, g[0])));
            line.push(sure.as_str().into());
            t.row(line);
        }
    } else {
        for (name, g) in names.iter().zip(&groups) {
            let mut line: Vec<Cell> = vec![name.as_str().into()];
            line.extend(rows.iter().map(|r| cell(r.cell, g[0])));
            t.row(line);
        }
        let mut line: Vec<Cell> = vec!["+-".into()];
        line.extend(sure.iter().map(|s| s.as_str().into()));
        t.row(line);
    }
    out += &t.render_fit(2, width, 1);
    let words = summary(rows);
    paint(&mut out, "  Verdict: ", HEAD);
    out += wrap(&words, 11, width.min(PROSE)).trim_start();
    for row in rows {
        for text in flags(row.cell, labels, false) {
            paint(&mut out, "  ! ", WARN);
            let text = format!("{}: {text}", row.name);
            out += wrap(&text, 4, width.min(PROSE)).trim_start();
        }
    }
    if let Some(note) = verdict::cpu_note(records) {
        paint(&mut out, "  ! ", WARN);
        out += wrap(&note, 4, width.min(PROSE)).trim_start();
    }
    out
}

/// "interactive, ms".
pub(super) fn head(row: &Judged) -> String {
    match row.cell.metric.unit.as_str() {
        "" => row.name.clone(),
        unit => format!("{}, {unit}", row.name),
    }
}

/// Half the widest interval of a cell's pairs with the best.
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
        Some(h) if h < 0.000_05 => "same".to_owned(),
        Some(h) if h > 9.995 => "wide".to_owned(),
        Some(h) => percent(h),
    }
}

/// "24.6  2.2x", "11.2     *", of a side.
pub(super) fn cell(cell: &CellAnalysis, side: usize) -> Cell {
    let side = &cell.sides[side];
    if let Some(longer) = side.censored {
        return painted(at_limit(&longer), WARN);
    }
    let Some(mean) = side.mean else {
        return "-".into();
    };
    let value = three(mean);
    let Some(best) = cell.best else {
        return value.into();
    };
    let own = side.treatment;
    match cell.ahead() {
        Ahead::Level => return format!("{value}     =").into(),
        Ahead::Who(who) if who.contains(&own) => {
            return painted(format!("{value}     *"), GOOD);
        }
        _ if own == best => return painted(format!("{value} lead?"), PLAIN),
        _ => {}
    }
    let times = cell.times(best, own).map_or(f64::INFINITY, |t| t.0);
    let mark = if cell.beats(best, own) { "x" } else { "?" };
    format!("{value} {}", self::times(times, mark)).into()
}

/// ">600 s", or "2 of 10 >600 s" where others finished.
fn at_limit(l: &Longer) -> String {
    let than = three(l.than_s);
    match l.runs == l.of {
        true => format!(">{than} s"),
        false => format!("{} of {} >{than} s", l.runs, l.of),
    }
}

/// "1.04x", " 2.2x", "  59x": five columns; a question mark where it is not shown.
fn times(x: f64, mark: &str) -> String {
    let text = match x {
        x if !x.is_finite() => "inf".to_owned(),
        x if x < 1.995 => format!("{x:.2}{mark}"),
        x if x < 9.95 => format!("{x:.1}{mark}"),
        x if x < 999.5 => format!("{x:.0}{mark}"),
        _ => ">999".to_owned(),
    };
    format!("{text:>5}")
}

/// The sentences of all cells; those that say the same together.
fn summary(rows: &[Judged]) -> String {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        let words = row.cell.sentence.as_str();
        match said.iter_mut().find(|s| s.0 == words) {
            Some(s) => s.1.push(&row.name),
            None => said.push((words, vec![&row.name])),
        }
    }
    let told: Vec<String> = said
        .into_iter()
        .map(|(words, names)| format!("{}: {words}", names.join(", ")))
        .collect();
    format!("{}.", told.join("; "))
}

/// What the marks mean, and what so many runs cannot say.
pub fn key(n: usize, margin: f64, width: usize) -> String {
    key_over("seed", ", and of the model", n, margin, width)
}

/// The same of runs for real.
pub fn key_for_real(n: usize, margin: f64, width: usize) -> String {
    key_over("block", ", here and now", n, margin, width)
}

fn key_over(what: &str, of: &str, n: usize, margin: f64, width: usize) -> String {
    let plural = if n == 1 { "" } else { "s" };
    let text = format!(
        "*: ahead, or level with it; 2.2x: 2.2 times worse; =: no difference within {}; ?: not \
         decided; +-: half the widest 95 % interval. Over {n} {what}{plural}{of}: {}.",
        percent(margin),
        may_still_happen(n)
    );
    let mut out = String::new();
    let lines = wrap(&text, 0, width.min(PROSE));
    paint(&mut out, &lines, crate::style::DIM);
    out
}

/// Signs of noise in words: all of them, or those that the first screen may not keep back. Spread
/// over seeds is what blocks are for, and is not among them.
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
            AtLimit { .. }
                | Starved { .. }
                | Fails { .. }
                | FewOperations { .. }
                | TailDecides { .. }
                | HostBusy { .. }
                | Moving { .. }
                | NotReached { .. }
        )
    };
    for flag in cell.flags.iter().filter(|f| all || first(f)) {
        let (words, who) = match flag {
            Flag::Outlier { treatment, blocks } => (
                format!("{} of {} runs far off", blocks.len(), cell.blocks),
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
                "a few runs decide (the typical run says something else)".to_owned(),
                treatment,
            ),
            Flag::MeansDiffer { treatment, ratio } => (
                format!("the ratio of plain means is another ({ratio:.3})"),
                treatment,
            ),
            Flag::FewOperations { treatment, n } => {
                (format!("only {} operations in a run", count(*n)), treatment)
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
                let text = format!("figures move by {} a block", percent(*slope));
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
                    "host busy: during {runs} of {} runs others took up to {} of the processors",
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
            // Told with the interval, and by it.
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

/// The verdict on one cell: its sentence, then each comparison with the reference. `details`: all that
/// is seen in other metrics and all remarks, not only what a screen has room for.
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
        Some(v) if v > 0.0 => format!(" A difference of {} would be seen.", percent(v)),
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
        out += &also::seen(cell, labels, if details { usize::MAX } else { ALSO }, prose);
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

/// What was left out as warm-up, where anything was: `10 s of interactive and streams`.
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

/// What to know where schedulers stand on different kernels, and programs use files.
pub fn kernels(records: &[Record]) -> &'static str {
    let mut files = records.iter().filter(|r| on_files(r));
    let first = files.next().map(|r| &r.scheduler.kernel);
    match files.any(|r| Some(&r.scheduler.kernel) != first) {
        true => " Page cache and file system are those of their kernels, too.",
        false => "",
    }
}

/// A score over all workloads of a device, a sentence a group.
pub fn scores(group: &Group, labels: &[String], width: usize) -> String {
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
            // Nothing is not ahead of anything.
            match size(times).as_str() {
                "0 %" => format!("{} level{half}", name(s.treatment)),
                size => format!("{} {size} {word}{half}", name(s.treatment)),
            }
        })
        .collect();
    let beaten: Vec<&str> = group.not_beaten.iter().map(|t| name(*t)).collect();
    let kept = match beaten.len() {
        0 => String::new(),
        n if n == group.scores.len() => " No scheduler is beaten.".to_owned(),
        _ => format!(" Undefeated: {}.", beaten.join(", ")),
    };
    let used = group.tests;
    let text = format!(
        "Over all {used} workloads, against {}: {}.{kept}",
        name(group.reference),
        each.join(", ")
    );
    wrap(&text, 2, width.min(PROSE))
}
