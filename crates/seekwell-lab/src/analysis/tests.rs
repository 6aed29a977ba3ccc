use super::*;
use crate::results::{About, Cell, Outcome, Run, RunKey, Summary, Treatment, Value};
use crate::stats::Verdict;

fn metric(higher: bool) -> MetricInfo {
    MetricInfo {
        name: "m".into(),
        unit: "ms".into(),
        higher_is_better: higher,
        step: None,
    }
}

/// One cell; a column of values a treatment, the first the reference.
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
        // No two runs are the same.
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

/// Blocks that differ by a tenth, with little noise.
fn column(times: f64, noise: f64) -> Vec<f64> {
    let block = |b: usize| 100.0 + 10.0 * (b % 3) as f64;
    let value = |b: usize| block(b) * times * (1.0 + noise * ((b * 7 % 5) as f64 - 2.0) / 2.0);
    (0..10).map(value).collect()
}

#[test]
fn fewer_is_better_turns_the_words_and_not_the_ratio() {
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
fn blocks_count_where_they_are_known_and_nowhere_else() {
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
fn published_means_and_errors_are_compared_as_they_are() {
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
fn holm_counts_all_cells_for_the_overview_and_one_for_its_page() {
    // p of one comparison about 2 %: a claim alone, a hint among many.
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
fn zero_has_no_ratio_and_says_so_by_its_test() {
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
fn one_run_each_compares_nothing() {
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
fn a_score_speaks_of_all_workloads_and_the_pick_is_shown_to_be_better() {
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
fn an_analysis_is_data_and_comes_back_as_it_was() {
    let (a, b) = (column(1.0, 0.0), column(1.1, 0.01));
    let all = analyse(&results(&[&a, &b], true, true));
    let text = serde_json::to_string(&all).expect("JSON");
    let back: Analysis = serde_json::from_str(&text).expect("the same");
    assert_eq!(serde_json::to_string(&back).expect("JSON"), text);
}

#[test]
fn nothing_is_dropped_for_being_far_off() {
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
    // The one run is in the effect: its share of ln 0.2, and wide for it.
    let effect = cell.comparisons[0].mean;
    let logs = one.iter().zip(&other).map(|(a, b)| (b / a).ln());
    let expected = logs.sum::<f64>() / n as f64;
    assert!(
        (effect - expected).abs() < 1e-9 && expected < -0.1,
        "{effect} {expected}"
    );
}

/// A quantile is one number a run; how many operations stand behind it makes nothing surer. Taken
/// as independent, they would claim what another ten runs deny.
#[test]
fn operations_within_runs_are_no_repetitions() {
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
fn a_device_on_which_all_failed_takes_nothing_from_the_others() {
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
