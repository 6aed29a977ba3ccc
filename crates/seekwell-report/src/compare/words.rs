//! Describes a row of the table of results in words: "best", "1.04x slower", "same", "unclear".

use super::seeds::Judged;
use crate::verdict::list;
use seekwell_core::prose::all_in_prose;
use seekwell_core::result::Record;
use seekwell_lab::analysis::single::Standing;
use seekwell_lab::analysis::{Ahead, CellAnalysis};

/// The result of one scheduler in one row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mark {
    /// The best scheduler. It is significantly ahead of at least one other scheduler.
    Best,
    /// Within the margin of the best scheduler.
    Same,
    /// Significantly worse than the best scheduler, by this factor.
    Slower(f64),
    /// At least one run of the scheduler reached its time limit, and the best scheduler is
    /// significantly ahead.
    Unfinished,
    /// The runs do not show whether the scheduler is worse than the best scheduler.
    Unclear,
    /// No run of the scheduler has a value.
    Missing,
}

/// Returns the result of each treatment in a row.
pub(super) fn of_cell(cell: &CellAnalysis, treatments: &[usize]) -> Vec<Mark> {
    let ahead = cell.ahead();
    let mark = |t: &usize| {
        let there = cell.sides.iter().find(|s| s.treatment == *t);
        let cut = there.is_some_and(|s| s.censored.is_some());
        if there.and_then(|s| s.mean).is_none() && !cut {
            return Mark::Missing;
        }
        let (Some(best), false) = (cell.best, ahead == Ahead::Open) else {
            return Mark::Unclear;
        };
        if cut && cell.beats(best, *t) {
            return Mark::Unfinished;
        }
        match &ahead {
            Ahead::Who(_) if *t == best => Mark::Best,
            Ahead::Who(near) if !near.contains(t) => match cell.beats(best, *t) {
                true => Mark::Slower(cell.times(best, *t).map_or(f64::INFINITY, |t| t.0)),
                false => Mark::Unclear,
            },
            _ => Mark::Same,
        }
    };
    treatments.iter().map(mark).collect()
}

/// Returns the result of each scheduler if there is only one run per scheduler.
pub(super) fn of_runs(standing: Option<&Standing>, records: &[Record]) -> Vec<Mark> {
    let Some(s) = standing.filter(|s| s.enough() && !s.only_placement()) else {
        return vec![Mark::Unclear; records.len()];
    };
    let (leaders, best) = (s.leaders(), s.order.first().map(|o| o.1));
    let mark = |run: usize| match leaders.contains(&run) {
        false if records[run].censored() && !leaders.is_empty() => Mark::Unfinished,
        _ if leaders.is_empty() => Mark::Same,
        true if best == Some(run) => Mark::Best,
        true => Mark::Same,
        false => Mark::Slower(s.times(run)),
    };
    (0..records.len()).map(mark).collect()
}

/// Returns "slower" for a time or a rate, and "worse" for other units.
pub(super) fn adverb(unit: &str) -> &'static str {
    let times = ["ns", "us", "ms", "s", "min", "h", "IOPS"];
    match times.contains(&unit) || unit.ends_with("/s") {
        true => "slower",
        false => "worse",
    }
}

/// Formats a factor, for example "1.04x", "2.2x", "59x".
fn factor(x: f64) -> String {
    match x {
        x if !x.is_finite() => "beyond comparison".to_owned(),
        x if x < 1.995 => format!("{x:.2}x"),
        x if x < 9.95 => format!("{x:.1}x"),
        x if x < 999.5 => format!("{x:.0}x"),
        _ => ">999x".to_owned(),
    }
}

/// Returns the text for the result of one scheduler.
pub(super) fn word(mark: Mark, unit: &str) -> String {
    match mark {
        Mark::Best => "best".to_owned(),
        Mark::Same => "same".to_owned(),
        Mark::Slower(x) => format!("{} {}", factor(x), adverb(unit)),
        Mark::Unfinished => "not finished".to_owned(),
        Mark::Unclear => "unclear".to_owned(),
        Mark::Missing => String::new(),
    }
}

/// Groups the names that have the same text. The groups are in the order of their first names.
fn together<'a>(all: impl Iterator<Item = (String, &'a str)>) -> Vec<(String, Vec<&'a str>)> {
    let mut out: Vec<(String, Vec<&str>)> = Vec::new();
    for (text, name) in all {
        match out.iter_mut().find(|o| o.0 == text) {
            Some(o) => o.1.push(name),
            None => out.push((text, vec![name])),
        }
    }
    out
}

/// Returns several texts that describe the same row of the table, from the longest to the shortest.
/// The caller takes the first text that fits. `marks` and `names` hold the result and the name of
/// each scheduler, in the same order. `unit` is the unit of the row's metric.
pub(super) fn phrases(marks: &[Mark], names: &[String], unit: &str) -> Vec<String> {
    let names = &all_in_prose(names);
    let of = |wanted: fn(&Mark) -> bool| -> Vec<&str> {
        let all = marks.iter().zip(names);
        all.filter(|(m, _)| wanted(m))
            .map(|(_, n)| n.as_str())
            .collect()
    };
    let best = of(|m| *m == Mark::Best);
    let same = of(|m| *m == Mark::Same);
    let unclear = of(|m| *m == Mark::Unclear);
    if best.is_empty() {
        return match (same.is_empty(), unclear.is_empty()) {
            (false, _) => vec!["same".to_owned()],
            (true, false) => vec!["unclear".to_owned()],
            (true, true) => vec![String::new()],
        };
    }
    let slower: Vec<(f64, &str)> = marks
        .iter()
        .zip(names)
        .filter_map(|(m, n)| match m {
            Mark::Slower(x) => Some((*x, n.as_str())),
            _ => None,
        })
        .collect();
    let unfinished = of(|m| *m == Mark::Unfinished);
    let rest = match unfinished.is_empty() {
        true => String::new(),
        false => format!(", {} not finished", list(&unfinished)),
    };
    let rest = match unclear.is_empty() {
        true => rest,
        false => format!("{rest}, {} unclear", list(&unclear)),
    };
    let behind = adverb(unit);
    let leaders: Vec<&str> = best.iter().chain(&same).copied().collect();
    let each = together(slower.iter().map(|(x, n)| (factor(*x), *n)));
    let each: Vec<String> = each
        .iter()
        .map(|(x, who)| format!("{} {x}", list(who)))
        .collect();
    let ahead = format!("{} best", list(&leaders));
    if slower.is_empty() {
        return vec![format!("{ahead}{rest}")];
    }
    let each = format!("{} {behind}", each.join(", "));
    let mut all = vec![format!("{ahead}, {each}{rest}")];
    // A shorter text names only the schedulers of the smaller group.
    if leaders.len() > slower.len() {
        all.push(format!("{each}, others same{rest}"));
        all.push(format!("{each}, rest same{rest}"));
    } else if slower.len() > 1 {
        let (least, most) = slower
            .iter()
            .fold((f64::INFINITY, 0.0), |(l, m): (f64, f64), s| {
                (l.min(s.0), m.max(s.0))
            });
        let span = match (factor(least), factor(most)) {
            (a, b) if a == b => a,
            (a, b) => format!("{a} to {b}"),
        };
        if rest.is_empty() {
            all.push(format!("{ahead}, others {span} {behind}"));
        }
        all.push(format!("{ahead}, next {} {behind}{rest}", factor(least)));
    }
    // The shortest text names only the best schedulers. The columns of the table contain the values
    // of the others.
    if rest.is_empty() {
        all.push(ahead);
    }
    all
}

/// Counts in how many rows each scheduler is ahead, for example "bfq ahead in 3 of 7 (copy, mail
/// and scan); level in 4 of 7". If `named` is true, small numbers of rows are listed by name.
pub(super) fn summary(rows: &[Judged], labels: &[String], named: bool) -> String {
    /// Maximum number of rows that are named. More rows are only counted.
    const NAMED: usize = 3;
    let labels = all_in_prose(labels);
    let name = |t: &usize| labels.get(*t).map_or("?", String::as_str);
    let mut said: Vec<(Ahead, Vec<String>)> = Vec::new();
    for row in rows {
        let who = row.cell.ahead();
        match said.iter_mut().find(|s| s.0 == who) {
            Some(s) => s.1.push(row.called()),
            None => said.push((who, vec![row.called()])),
        }
    }
    said.sort_by_key(|s| std::cmp::Reverse(s.1.len()));
    let all = rows.len();
    let each = said.iter().map(|(who, tests)| {
        let what = match who {
            Ahead::Who(who) => format!("{} ahead", list(&who.iter().map(name).collect::<Vec<_>>())),
            Ahead::Level => "level".to_owned(),
            Ahead::Open => "not decided".to_owned(),
        };
        let n = tests.len();
        match named && n <= NAMED {
            true => {
                let tests: Vec<&str> = tests.iter().map(String::as_str).collect();
                format!("{what} in {n} of {all} ({})", list(&tests))
            }
            false => format!("{what} in {n} of {all}"),
        }
    });
    format!("{}.", each.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark_words(marks: &[Mark], unit: &str) -> Vec<String> {
        let names = ["none", "mq-deadline", "kyber", "bfq"].map(str::to_owned);
        phrases(marks, &names[..marks.len()], unit)
    }

    #[test]
    fn row_of_marks_is_summarised_in_words() {
        use Mark::{Best, Same, Slower, Unclear, Unfinished};
        assert_eq!(mark_words(&[Same, Same, Same, Same], "ms"), ["same"]);
        assert_eq!(mark_words(&[Unclear, Unclear], "ms"), ["unclear"]);
        assert_eq!(
            mark_words(&[Slower(2.2), Slower(2.14), Slower(2.2), Best], "ms"),
            [
                "bfq best, `none` and kyber 2.2x, mq-deadline 2.1x slower",
                "bfq best, others 2.1x to 2.2x slower",
                "bfq best, next 2.1x slower",
                "bfq best"
            ]
        );
        assert_eq!(
            mark_words(&[Best, Same, Same, Slower(1.16)], "files/s"),
            [
                "`none`, mq-deadline and kyber best, bfq 1.16x slower",
                "bfq 1.16x slower, others same",
                "bfq 1.16x slower, rest same",
                "`none`, mq-deadline and kyber best"
            ]
        );
        assert_eq!(
            mark_words(&[Best, Slower(43.2), Unclear], "blogs"),
            ["`none` best, mq-deadline 43x worse, kyber unclear"]
        );
        assert_eq!(
            mark_words(&[Unfinished, Best, Unfinished], "s"),
            ["mq-deadline best, `none` and kyber not finished"]
        );
    }

    #[test]
    fn times_and_rates_are_slower_and_shares_are_worse() {
        for unit in ["ms", "s", "files/s", "MB/s", "I/Os/s", "IOPS"] {
            assert_eq!(word(Mark::Slower(1.04), unit), "1.04x slower", "{unit}");
        }
        for unit in ["%", "blogs", ""] {
            assert_eq!(word(Mark::Slower(1.04), unit), "1.04x worse", "{unit}");
        }
        assert_eq!(word(Mark::Slower(2500.0), "s"), ">999x slower");
    }
}
