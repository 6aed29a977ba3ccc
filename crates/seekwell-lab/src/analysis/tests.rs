use super::*;
use crate::data::{About, Cell, Outcome, Run, RunKey, Summary, Treatment, Value};
use crate::stats::Verdict;

fn metric(higher: bool) -> MetricInfo {
    MetricInfo {
        name: "m".into(),
        unit: "ms".into(),
        higher_is_better: higher,
        step: None,
    }
}

/// Builds results with one cell and one column of values per treatment. The first treatment is the
/// reference.
fn results(columns: &[&[f64]], higher: bool, paired: bool) -> Results {
    let run = |treatment: usize, block: usize, value: f64| Run {
        key: RunKey {
            cell: 0,
            block: block as u32,
            treatment,
        },
        values: vec![Value {
            metric: metric(higher).into(),
            value,
            n: 100,
        }],
        // Different durations, so that no two runs are identical.
        duration_ns: (block * 10) as u64,
        ..Run::default()
    };
    let of = |(t, column): (usize, &&[f64])| {
        let each = column.iter().enumerate();
        each.map(move |(b, v)| run(t, b, *v)).collect::<Vec<_>>()
    };
    Results {
        about: About {
            paired,
            ..About::default()
        },
        cells: vec![Cell {
            name: "c".into(),
            primary: metric(higher),
            treatments: (0..columns.len()).collect(),
            ..Cell::default()
        }],
        treatments: (0..columns.len())
            .map(|t| Treatment {
                label: format!("s{t}"),
                ..Treatment::default()
            })
            .collect(),
        runs: columns.iter().enumerate().flat_map(of).collect(),
        summaries: Vec::new(),
    }
}

/// Returns the values of blocks that differ by a tenth, with little noise.
fn column(times: f64, noise: f64) -> Vec<f64> {
    let block = |b: usize| 100.0 + 10.0 * (b % 3) as f64;
    let value = |b: usize| block(b) * times * (1.0 + noise * ((b * 7 % 5) as f64 - 2.0) / 2.0);
    (0..10).map(value).collect()
}

#[test]
fn lower_is_better_reverses_the_words_but_not_the_ratio() {
    let (a, b) = (column(1.0, 0.0), column(1.2, 0.02));
    let r = analyse(&results(&[&a, &b], false, true));
    let c = &r.cells[0].comparisons[0];
    assert!(c.ratio.is_some_and(|r| (r - 1.2).abs() < 0.01));
    assert_eq!(c.verdict, Verdict::Worse);
    assert!(c.words.starts_with("20 % behind ("), "{}", c.words);
    assert_eq!(r.cells[0].winner, Some(0));
    assert!(
        r.cells[0].sentence.starts_with("s0 ahead, s1 20 % behind"),
        "{}",
        r.cells[0].sentence
    );
    let r = analyse(&results(&[&a, &b], true, true));
    assert_eq!(r.cells[0].comparisons[0].verdict, Verdict::Better);
    assert_eq!(r.cells[0].not_beaten, [1]);
}

#[test]
fn paired_test_is_used_only_with_blocks() {
    let (a, b) = (column(1.0, 0.0), column(1.03, 0.002));
    let paired = analyse(&results(&[&a, &b], true, true));
    let apart = analyse(&results(&[&a, &b], true, false));
    let c = |a: &Analysis| a.cells[0].comparisons[0].clone();
    assert_eq!(
        (c(&paired).test, c(&apart).test),
        (Test::Paired, Test::Welch)
    );
    assert!(c(&paired).verdict.claims() && !c(&apart).verdict.claims());
}

#[test]
fn published_means_and_errors_are_compared_directly() {
    let mut r = results(&[&[], &[], &[]], true, false);
    let of = |treatment, mean, se| Summary {
        treatment,
        metric: metric(true),
        mean,
        se: Some(se),
        n: Some(3),
        ..Summary::default()
    };
    r.summaries = vec![of(0, 100.0, 0.5), of(1, 110.0, 0.5), of(2, 100.2, 0.4)];
    let a = analyse(&r);
    let [one, two] = &a.cells[0].comparisons[..] else {
        panic!("two comparisons");
    };
    assert_eq!((one.test, one.n), (Test::WelchSummary, 3));
    assert!(
        one.verdict.claims() && !two.verdict.claims(),
        "{one:?} {two:?}"
    );
    assert!(two.p_adjusted >= two.p);
    assert_eq!(a.cells[0].sides[1].mean, Some(110.0));
}

#[test]
fn holm_correction_counts_all_cells_for_the_overview_and_one_for_a_cell() {
    // The p value of one comparison is about 2 %. That is significant alone, but not among many
    // comparisons.
    let (a, b) = (column(1.0, 0.0), column(1.006, 0.014));
    let mut r = results(&[&a, &b], true, true);
    let alone = analyse(&r).cells[0].comparisons[0].clone();
    let p = alone.p.expect("a p");
    assert!((0.001..0.4).contains(&p), "{p}");
    for cell in 1..20 {
        let mut more = r.cells[0].clone();
        more.name = format!("c{cell}");
        r.cells.push(more);
        let own: Vec<Run> = r.runs.iter().filter(|r| r.key.cell == 0).cloned().collect();
        r.runs.extend(own.into_iter().map(|mut run| {
            run.key.cell = cell;
            run
        }));
    }
    let many = analyse(&r);
    let c = &many.cells[0].comparisons[0];
    assert_eq!(many.comparisons, 20);
    assert_eq!(c.p_cell, alone.p_adjusted);
    assert_eq!(
        c.p_adjusted,
        Some(crate::stats::stored((20.0 * p).min(1.0)))
    );
}

#[test]
fn zero_values_are_compared_as_differences_without_a_ratio() {
    let (a, b) = (
        vec![0.0, 1.0, 0.0, 2.0, 1.0],
        vec![10.0, 12.0, 11.0, 10.0, 12.0],
    );
    let r = analyse(&results(&[&a, &b], true, true));
    let c = &r.cells[0].comparisons[0];
    assert_eq!((c.test, c.ratio), (Test::PairedDifferences, None));
    assert!(c.verdict.claims(), "{c:?}");
    assert_eq!(r.groups[0].left_out.len(), 1, "no part in geometric means");
}

#[test]
fn single_runs_are_not_compared() {
    let r = analyse(&results(&[&[100.0], &[300.0]], true, true));
    let cell = &r.cells[0];
    assert_eq!(cell.sentence, "one run each: not compared");
    assert!(cell.winner.is_none() && cell.not_beaten == [0, 1]);
    assert_eq!(r.groups[0].decision, "");
    let mut failed = results(&[&[100.0], &[300.0]], true, true);
    failed.runs[1].outcome = Outcome::Failed("no space".into());
    assert_eq!(analyse(&failed).cells[0].sides[1].failed, 1);
}

#[test]
fn score_covers_all_workloads_and_the_pick_must_be_better() {
    let (a, b, c) = (column(1.0, 0.0), column(1.10, 0.002), column(1.0, 0.003));
    let mut r = results(&[&a, &b, &c], true, true);
    let mut second = r.cells[0].clone();
    second.name = "d".into();
    r.cells.push(second);
    let own = r.runs.clone();
    r.runs.extend(own.into_iter().map(|mut run| {
        run.key.cell = 1;
        run
    }));
    let g = &analyse(&r).groups[0];
    assert_eq!(
        (g.cells.len(), &*g.decision, g.pick),
        (2, "change", Some(1))
    );
    let score = g.scores.iter().find(|s| s.treatment == 1).expect("a score");
    assert!(
        (score.times - 1.1).abs() < 0.01 && score.won == 2 && score.lost == 0,
        "{score:?}"
    );
    assert_eq!(g.not_beaten, [1]);
}

#[test]
fn analysis_survives_a_json_round_trip() {
    let (a, b) = (column(1.0, 0.0), column(1.1, -0.01));
    let all = analyse(&results(&[&a, &b], true, true));
    let text = serde_json::to_string(&all).expect("JSON");
    let back: Analysis = serde_json::from_str(&text).expect("the same");
    assert_eq!(serde_json::to_string(&back).expect("JSON"), text);
}

#[test]
fn outliers_are_flagged_but_kept() {
    let (one, mut other) = (column(1.0, 0.01), column(1.0, 0.01));
    other[4] *= 0.2;
    let r = analyse(&results(&[&one, &other], true, true));
    let cell = &r.cells[0];
    let flagged = |f: &Flag| matches!(f, Flag::Outlier { treatment: 1, blocks } if blocks == &[4]);
    assert!(cell.flags.iter().any(flagged), "{:?}", cell.flags);
    let n = other.len();
    assert_eq!((cell.sides[1].n, cell.comparisons[0].n), (n, n));
    let mean = other.iter().sum::<f64>() / n as f64;
    assert_eq!(cell.sides[1].mean, Some(stats::stored(mean)));
    // The single run contributes ln 0.2 to the mean effect, and widens the interval.
    let effect = cell.comparisons[0].mean.expect("blocks");
    let logs = one.iter().zip(&other).map(|(a, b)| (b / a).ln());
    let expected = logs.sum::<f64>() / n as f64;
    assert!(
        (effect - expected).abs() < 1e-9 && expected < -0.1,
        "{effect} {expected}"
    );
}

#[test]
fn treatments_without_a_common_block_are_not_compared() {
    let mut r = results(
        &[&[100.0, 101.0, 102.0], &[100.0, 101.0, 102.0]],
        true,
        true,
    );
    let fails = |run: &Run| (run.key.block == 1) != (run.key.treatment == 1);
    for run in r.runs.iter_mut().filter(|run| fails(run)) {
        run.outcome = Outcome::Failed("no".into());
        run.values.clear();
    }
    let cell = &analyse(&r).cells[0];
    let c = &cell.comparisons[0];
    assert_eq!(
        (c.n, c.mean, c.ratio, c.verdict),
        (0, None, None, Verdict::CannotTell)
    );
    assert_eq!(c.words, "no block contains both: not compared");
    assert_eq!(
        cell.sentence,
        "no block contains two schedulers: not compared"
    );
    assert!(!cell.beats(0, 1) && !cell.beats(1, 0));
    let json = serde_json::to_value(c).expect("JSON");
    assert!(json["mean"].is_null() && json.get("mean").is_some());
}

/// A quantile is one number per run, so more operations in a run do not make it more certain. If
/// the operations counted as independent, they would support a claim that ten more runs contradict.
#[test]
fn operations_within_a_run_do_not_count_as_repetitions() {
    let (one, other) = (column(1.0, 0.03), column(1.01, -0.03));
    let with = |operations: u64| {
        let mut r = results(&[&one, &other], false, true);
        for run in &mut r.runs {
            let own = std::sync::Arc::make_mut(&mut run.values[0].metric);
            own.name = "fsync p99".into();
            run.values[0].n = operations;
        }
        r.cells[0].primary.name = "fsync p99".into();
        analyse(&r).cells.remove(0).comparisons.remove(0)
    };
    let (few, many) = (with(2_000), with(2_000_000));
    assert_eq!(few, many);
    assert_eq!((few.n, few.df), (one.len(), Some((one.len() - 1) as f64)));
    assert!(!few.verdict.claims(), "{}", few.words);
}

#[test]
fn device_on_which_every_run_failed_does_not_affect_others() {
    let slow = column(1.2, 0.01);
    let mut r = results(&[&column(1.0, 0.01), &slow], false, true);
    let alone = analyse(&r).groups[0].clone();
    assert!(!alone.decision.is_empty());
    r.cells.push(Cell {
        name: "d".into(),
        device: "too small".into(),
        ..r.cells[0].clone()
    });
    for treatment in 0..2 {
        r.runs.push(Run {
            key: RunKey {
                cell: 1,
                block: 0,
                treatment,
            },
            outcome: Outcome::Failed("beyond the device".into()),
            ..Run::default()
        });
    }
    let groups = analyse(&r).groups;
    assert_eq!(groups[0].decision, alone.decision);
    assert_eq!(groups[0].scores, alone.scores);
    assert!(groups[1].decision.is_empty() && groups[1].left_out.len() == 1);
}

/// Returns the same results with a second deciding metric.
fn with_row(mut r: Results, name: &str, columns: &[&[f64]], higher: bool) -> Results {
    let row = MetricInfo {
        name: name.into(),
        ..metric(higher)
    };
    for run in &mut r.runs {
        run.values.push(Value {
            metric: row.clone().into(),
            value: columns[run.key.treatment][run.key.block as usize],
            n: 100,
        });
    }
    r.cells[0].rows.push(row);
    r
}

#[test]
fn every_deciding_metric_is_a_row_and_all_must_agree_on_no_difference() {
    let (a, b) = (column(1.0, 0.001), column(1.0, -0.001));
    let equal = || results(&[&a, &b], true, true);
    assert!(analyse(&equal()).groups[0].level);
    // The values of the second row differ by a factor of three: the second treatment takes three
    // times as long.
    let (fast, slow) = (column(1.0, 0.01), column(3.0, -0.01));
    let all = analyse(&with_row(equal(), "p99", &[&fast, &slow], false));
    assert_eq!(all.cells.len(), 2);
    let rows: Vec<_> = all.cells.iter().map(|c| (c.cell, c.row, c.rows)).collect();
    assert_eq!(rows, [(0, 0, 2), (0, 1, 2)]);
    assert_eq!(all.cells[1].title(), ", p99");
    assert!(all.cells[0].level && all.cells[1].winner == Some(0));
    let group = &all.groups[0];
    assert_eq!((group.cells.len(), group.tests, group.level), (2, 1, false));
    let score = group
        .scores
        .iter()
        .find(|s| s.treatment == 1)
        .expect("a score");
    // The geometric mean of 1 and 1/3.
    assert!(
        (score.times - (1.0_f64 / 3.0).sqrt()).abs() < 0.01,
        "{}",
        score.times
    );
    assert_eq!(score.regret_on, Some(1));
    // A second row in which the treatments agree does not count as a difference.
    let alone = analyse(&with_row(equal(), "p99", &[&fast, &fast], false));
    assert!(alone.groups[0].level);
}

/// The rows of a cell are measured in the same runs, so two rows are not twice as much evidence as
/// one.
#[test]
fn rows_of_the_same_runs_add_no_certainty_to_a_score() {
    let (a, b) = (column(1.0, 0.02), column(1.02, -0.05));
    let once = results(&[&a, &b], true, true);
    let twice = with_row(once.clone(), "again", &[&a, &b], true);
    let of = |r: &Results| analyse(r).groups[0].scores.clone();
    let (once, twice) = (of(&once), of(&twice));
    let ends = |s: &[Score]| s.iter().find(|s| s.treatment == 1).and_then(|s| s.times95);
    let ((l, h), (m, i)) = (
        ends(&once).expect("ten blocks"),
        ends(&twice).expect("ten blocks"),
    );
    assert!(
        (l / m - 1.0).abs() < 1e-9 && (h / i - 1.0).abs() < 1e-9,
        "{l} {h} {m} {i}"
    );
}

#[test]
fn no_difference_requires_agreement_of_checked_metrics() {
    let (a, b) = (column(1.0, 0.001), column(1.0, -0.001));
    let (fast, slow) = (column(1.0, 0.01), column(1.1, -0.01));
    let mut r = with_row(
        results(&[&a, &b], true, true),
        "mean",
        &[&fast, &slow],
        false,
    );
    r.cells[0].rows.clear();
    assert!(analyse(&r).groups[0].level, "an unknown figure has no say");
    r.cells[0].checks.push("mean".into());
    let all = analyse(&r);
    assert!(!all.groups[0].level);
    let check = &all.cells[0].checks[0];
    let (times, best) = check.behind(1).expect("a value");
    assert!((times - 1.1).abs() < 0.01 && best == 0, "{times} {best}");
    assert_eq!(check.behind(0), Some((1.0, 0)));
}

/// The printed interval is the deciding interval. It excludes 0 exactly if a difference is claimed
/// after the correction.
#[test]
fn printed_interval_is_the_deciding_interval() {
    let columns: Vec<Vec<f64>> = [1.0, 1.004, 1.01, 1.02, 1.05, 1.2]
        .iter()
        .enumerate()
        .map(|(i, times)| {
            column(
                *times,
                0.015 * (i as f64 + 1.0) * if i % 2 == 0 { 1.0 } else { -1.0 },
            )
        })
        .collect();
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let all = analyse(&results(&columns, true, true));
    let (mut claimed, mut lost) = (0, 0);
    for c in all.cells[0].pairs.iter().chain(&all.cells[0].comparisons) {
        let (low, high) = c.deciding95.expect("ten blocks");
        let excludes = low > 0.0 || high < 0.0;
        assert_eq!(excludes, c.p_adjusted.expect("tested") <= 0.05, "{c:?}");
        let (l, h) = c.interval95.expect("ten blocks");
        assert!(low <= l && h <= high, "{c:?}");
        claimed += usize::from(excludes);
        lost += usize::from((l > 0.0 || h < 0.0) && !excludes);
    }
    assert!(
        claimed > 3 && lost > 0,
        "both kinds are there: {claimed} {lost}"
    );
}

#[test]
fn results_can_be_judged_by_another_metric() {
    let (a, b) = (column(1.0, 0.001), column(1.0, -0.001));
    let (fast, slow) = (column(1.0, 0.01), column(3.0, -0.01));
    let mut r = with_row(
        results(&[&a, &b], true, true),
        "p99",
        &[&fast, &slow],
        false,
    );
    r.judged_by(&["p99".into()]).expect("given");
    let all = analyse(&r);
    assert_eq!((all.cells.len(), &*all.cells[0].metric.name), (1, "p99"));
    let (metric, known) = r.judged_by(&["p98".into()]).expect_err("not given");
    assert_eq!(
        (&*metric, &known[..]),
        ("p98", &["m".to_owned(), "p99".to_owned()][..])
    );
}
/// Returns a run that took `time_s`. `None` means that the run reached its limit of 600 s.
fn timed(treatment: usize, block: u32, value: f64, time_s: Option<f64>) -> Run {
    let duration = MetricInfo {
        name: crate::conduct::DURATION.into(),
        unit: "s".into(),
        ..MetricInfo::default()
    };
    let one = |metric: MetricInfo, value| Value {
        metric: metric.into(),
        value,
        n: 100,
    };
    Run {
        key: RunKey {
            cell: 0,
            block,
            treatment,
        },
        outcome: match time_s {
            Some(_) => Outcome::Done,
            None => Outcome::Censored("stopped at the time limit of 600 s".into()),
        },
        values: vec![
            one(metric(false), value),
            one(duration, time_s.unwrap_or(600.0)),
        ],
        duration_ns: u64::from(block),
        ..Run::default()
    }
}

/// Builds a cell from the time of each block, by treatment. `None` means that the run reached its
/// limit. A run that reached its limit gets the best value of the metric. Such values occur if a
/// program starts an application several times and only one start, a fast one, ended before the
/// limit.
fn with_limits(columns: &[&[Option<f64>]]) -> CellAnalysis {
    let mut all = results(&vec![&[][..]; columns.len()], false, true);
    for (t, column) in columns.iter().enumerate() {
        for (b, time) in column.iter().enumerate() {
            let value = time.map_or(0.1, |s| s / 5.0);
            all.runs.push(timed(t, b as u32, value, *time));
        }
    }
    analyse(&all).cells.remove(0)
}

#[test]
fn run_at_its_limit_loses_against_finished_runs() {
    let done = [Some(25.0), Some(26.0), Some(24.5)];
    let slower = [Some(38.0), Some(40.0), Some(36.0)];
    let cell = with_limits(&[&[None; 3], &done, &slower]);
    // The limit of 600 s is compared with 25.2 s.
    assert_eq!((cell.best, cell.winner), (Some(1), Some(1)));
    let (pair, _) = cell.pair(0, 1).expect("a pair");
    assert_eq!(pair.verdict, Verdict::Worse);
    assert!(pair.at_least());
    assert!((pair.ratio.expect("a ratio") - 23.849).abs() < 0.001);
    assert_eq!(
        pair.words,
        "at least 24 times behind in time for the same work; limit reached in 3 of 3 blocks"
    );
    assert!(cell.beats(1, 0) && cell.beats(2, 0) && cell.beats(1, 2));
    let side = &cell.sides[0];
    let longer = side.censored.expect("it has some");
    assert_eq!((longer.runs, longer.of, longer.than_s), (3, 3, 600.0));
    assert_eq!((side.mean, side.n, side.failed), (None, 0, 0));
    assert!(
        cell.flags.iter().any(|f| matches!(
            f,
            Flag::AtLimit {
                treatment: 0,
                runs: 3,
                ..
            }
        )),
        "{:?}",
        cell.flags
    );
    // Finished runs are compared by their own metric.
    let (pair, _) = cell.pair(1, 2).expect("a pair");
    assert_eq!(pair.at_limit, None);
    // The sentence names the next treatment, and gives a lower bound for the treatment that reached
    // its limit.
    let cell = with_limits(&[&done, &[None; 3]]);
    assert_eq!(cell.sentence, "s0 ahead, s1 at least 24 times behind");
}

#[test]
fn treatments_at_their_limits_are_not_distinguished() {
    let cell = with_limits(&[&[None; 3], &[None; 3]]);
    assert_eq!((cell.best, cell.winner, cell.level), (None, None, false));
    let (pair, _) = cell.pair(0, 1).expect("a pair");
    assert_eq!(pair.verdict, Verdict::CannotTell);
    assert_eq!(
        pair.words,
        "cannot tell; limit reached in 3 of 3 blocks, by both in 3 of them"
    );
    assert_eq!(
        cell.sentence,
        "not decided: no scheduler finished every run within its limit (600 s)"
    );
}

#[test]
fn one_run_at_its_limit_removes_the_mean_and_the_equality_claim() {
    let close = |s: f64| -> Vec<Option<f64>> { (0..10).map(|b| Some(s + f64::from(b))).collect() };
    let mut cut = close(100.0);
    cut[3] = None;
    let cell = with_limits(&[&close(100.0), &cut]);
    assert_eq!(
        cell.sides[1].mean, None,
        "nine quick runs are no picture of it"
    );
    assert_eq!(cell.best, Some(0));
    assert_eq!(cell.comparisons[0].verdict, Verdict::CannotTell);
    assert_eq!(
        cell.comparisons[0].words,
        "cannot tell; limit reached in 1 of 10 blocks"
    );
}

#[test]
fn starved_tasks_are_flagged_with_their_runs() {
    let mut all = results(&[&[10.0, 11.0, 12.0], &[10.0, 11.0, 12.0]], false, true);
    let starved = seekwell_core::result::Starved {
        tasks: "reader".into(),
        starved: 5,
        of: 8,
        did: (6, 7),
        others_did: (1136, 1139),
    };
    for r in all.runs.iter_mut().filter(|r| r.key.treatment == 1).skip(1) {
        r.starved.push(starved.clone());
    }
    let cell = analyse(&all).cells.remove(0);
    let flag = Flag::Starved {
        treatment: 1,
        runs: 2,
        first: starved,
    };
    assert_eq!(cell.flags[0], flag);
}
