//! Tests differences without spread. The verdict of the cell, the recommendation, and the
//! comparison of sessions must agree on them.

use seekwell_lab::analysis::analyse;
use seekwell_lab::results::{About, Cell, MetricInfo, Results, Run, RunKey, Treatment, Value};
use seekwell_lab::stats::Verdict;

fn metric() -> MetricInfo {
    MetricInfo {
        name: "speed".into(),
        unit: "MB/s".into(),
        higher_is_better: true,
        step: None,
    }
}

/// Makes one cell with one column of values per treatment. The first treatment is the reference. No
/// two runs are identical.
fn results(substrate: &str, columns: &[&[f64]]) -> Results {
    let mut runs = Vec::new();
    for (treatment, column) in columns.iter().enumerate() {
        for (block, value) in column.iter().enumerate() {
            runs.push(Run {
                key: RunKey {
                    cell: 0,
                    block: block as u32,
                    treatment,
                },
                values: vec![Value {
                    metric: metric().into(),
                    value: *value,
                    n: 100,
                }],
                duration_ns: block as u64,
                ..Run::default()
            });
        }
    }
    let treatment = |t: usize| Treatment {
        label: format!("s{t}"),
        ..Treatment::default()
    };
    Results {
        about: About {
            paired: true,
            ..About::default()
        },
        cells: vec![Cell {
            name: "c".into(),
            substrate: substrate.into(),
            primary: metric(),
            treatments: (0..columns.len()).collect(),
            ..Cell::default()
        }],
        treatments: (0..columns.len()).map(treatment).collect(),
        runs,
        summaries: Vec::new(),
    }
}

/// Blocks that differ by a tenth.
fn column(times: f64) -> Vec<f64> {
    (0..10)
        .map(|b| times * (100.0 + 10.0 * f64::from(b % 3)))
        .collect()
}

/// In the model, this value does not depend on randomness, although other figures of the runs
/// differ. The verdict of the cell and the recommendation must agree.
#[test]
fn constant_difference_in_every_seed_is_exact_for_a_model() {
    let (a, b) = ([100.0; 5], [120.0; 5]);
    let told = analyse(&results("sim", &[&a, &b]));
    let c = &told.cells[0].comparisons[0];
    assert_eq!(c.verdict, Verdict::Better);
    assert_eq!(c.words, "20 % ahead (the same in all 5 blocks)");
    assert_eq!(told.cells[0].winner, Some(1));
    let group = &told.groups[0];
    assert_eq!((group.decision.as_str(), group.pick), ("change", Some(1)));
    assert_eq!(group.scores.iter().map(|s| s.won).sum::<usize>(), 1);
    // Three blocks are enough for a decision, and two are not.
    let of = |n: usize| {
        let told = analyse(&results("sim", &[&a[..n], &b[..n]]));
        told.groups[0].decision.clone()
    };
    assert_eq!((of(3).as_str(), of(2).as_str()), ("change", "cannot_tell"));
    // On a real machine, rounding may hide the spread.
    let told = analyse(&results("host", &[&a, &b]));
    assert_eq!(told.cells[0].comparisons[0].verdict, Verdict::CannotTell);
    assert_eq!(told.groups[0].decision, "cannot_tell");
}

/// A standard error of 0 that comes from a few blocks has no meaning. Neither the cell nor the
/// recommendation may claim certainty.
#[test]
fn constant_difference_in_few_host_blocks_is_not_certain() {
    let (a, b) = (column(1.0), column(1.2));
    let told = analyse(&results("sim", &[&a, &b]));
    let cell = &told.cells[0];
    assert_eq!(cell.comparisons[0].verdict, Verdict::CannotTell);
    let words = &cell.comparisons[0].words;
    assert_eq!(words, "20 % ahead in all 10 blocks; 20 blocks would decide");
    let said = "not decided, s1 leads: the same in all 10 blocks; about 20 blocks would decide";
    assert_eq!(cell.sentence, said);
    assert_eq!(told.groups[0].decision, "cannot_tell");
    assert_eq!(told.groups[0].at_most(), None, "nothing bounds it");
    assert_eq!(told.groups[0].blocks_needed(&told), Some(20));
    let twice = |c: &[f64]| [c, c].concat();
    let told = analyse(&results("sim", &[&twice(&a), &twice(&b)]));
    assert_eq!(told.cells[0].comparisons[0].verdict, Verdict::Better);
    assert_eq!(told.groups[0].decision, "change");
}
