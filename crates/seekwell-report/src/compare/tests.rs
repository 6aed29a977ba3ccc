//! Answers for results built by hand.

use super::answer::answer;
use super::seeds::{Judged, legend};
use anstream::adapter::strip_str;
use seekwell_lab::analysis::{Analysis, analyse};
use seekwell_lab::results::{
    About, Cell, MetricInfo, Outcome, Results, Run, RunKey, Treatment, Value,
};

/// A cell: device, workload, unit, whether larger values are better, and the value of each
/// scheduler.
type Made<'a> = (&'a str, &'a str, &'a str, bool, &'a [f64]);

/// Analyses eight seeds of each cell. The values vary by 0.1 %.
pub(crate) fn analysed(schedulers: &[&str], cells: &[Made]) -> (Results, Analysis) {
    let metric = |unit: &str, more: bool| MetricInfo {
        name: "it".to_owned(),
        unit: unit.to_owned(),
        higher_is_better: more,
        step: None,
    };
    let cell = |(device, workload, unit, more, _): &Made| Cell {
        name: format!("{device} / {workload}"),
        device: (*device).to_owned(),
        workload: (*workload).to_owned(),
        substrate: "sim".to_owned(),
        primary: metric(unit, *more),
        treatments: (0..schedulers.len()).collect(),
        ..Cell::default()
    };
    let mut runs = Vec::new();
    for (c, (_, _, unit, more, figures)) in cells.iter().enumerate() {
        for block in 0..8u32 {
            for (treatment, figure) in figures.iter().enumerate() {
                let noise = 1.0 + 0.001 * f64::from((block * 7 + treatment as u32 * 3) % 5);
                runs.push(Run {
                    key: RunKey {
                        cell: c,
                        block,
                        treatment,
                    },
                    outcome: Outcome::Done,
                    values: vec![Value {
                        metric: metric(unit, *more).into(),
                        value: figure * noise,
                        n: 100,
                    }],
                    ..Run::default()
                });
            }
        }
    }
    let treatment = |s: &&str| Treatment {
        label: (*s).to_owned(),
        scheduler: (*s).to_owned(),
        ..Treatment::default()
    };
    let results = Results {
        about: About {
            paired: true,
            source: "experiment".to_owned(),
            ..About::default()
        },
        treatments: schedulers.iter().map(treatment).collect(),
        cells: cells.iter().map(cell).collect(),
        runs,
        summaries: Vec::new(),
    };
    let analysis = analyse(&results);
    (results, analysis)
}

const TODAY: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

fn rendered(analysis: &Analysis, rows: &[Judged], lines: usize, width: usize) -> String {
    let legend = legend(0.02, width);
    let text = answer(
        rows,
        &analysis.treatments,
        ("On a disk", &legend),
        &[],
        lines,
        width,
    );
    let text = strip_str(&text).to_string();
    let widest = text.lines().map(|l| l.chars().count()).max();
    assert!(widest <= Some(width), "{widest:?}\n{text}");
    text
}

/// Returns one row per cell.
fn rows(analysis: &Analysis) -> Vec<Judged<'_>> {
    let all = analysis.cells.iter();
    all.map(|c| Judged::new(c.workload.clone(), c)).collect()
}

#[test]
fn row_contains_every_figure_and_a_summary_in_words() {
    let cells: [Made; 4] = [
        ("a", "copy", "ms", false, &[5.0, 5.2, 5.2, 109.0]),
        ("a", "mail", "files/s", true, &[104.0, 100.0, 104.0, 104.0]),
        ("a", "scan", "MB/s", true, &[100.0, 100.0, 100.0, 100.0]),
        ("a", "shares", "%", true, &[50.0, 25.0, 50.0, 50.0]),
    ];
    let (_, analysis) = analysed(&TODAY, &cells);
    let rows = rows(&analysis);
    // With more space there are more words, and the precision.
    let (narrow, wide, wider) = (
        [
            "copy, ms       5.01         5.21   5.21   109  `none` best, next 1.04x slower\n",
            "mail, files/s   104          100    104   104  bfq, `none` and kyber best\n",
            "scan, MB/s      100          100    100   100  same\n",
            "shares, %      50.1         25.0   50.1  50.1  bfq, `none` and kyber best\n",
        ],
        [
            "109  0.2 %  `none` best, others 1.04x to 22x slower\n",
            "104  0.2 %  mq-deadline 1.04x slower, others same\n",
            "100  0.2 %  same\n",
            "50.1  0.2 %  mq-deadline 2.0x worse, others same\n",
        ],
        [
            "109  0.2 %  `none` best, mq-deadline and kyber 1.04x, bfq 22x slower\n",
            "104  0.2 %  bfq, `none` and kyber best, mq-deadline 1.04x slower\n",
            "100  0.2 %  same\n",
            "50.1  0.2 %  bfq, `none` and kyber best, mq-deadline 2.0x worse\n",
        ],
    );
    for (width, expected) in [(80, narrow), (100, wide), (140, wider)] {
        let text = rendered(&analysis, &rows, 24, width);
        for row in expected {
            assert!(text.contains(row), "{width}: {row}\n{text}");
        }
        let legend = text.find("best, 1.04x slower").expect("a legend");
        assert!(legend < text.find("WORKLOAD").expect("a table"), "{text}");
    }
}

#[test]
fn rows_are_grouped_by_workload_and_workloads_by_device() {
    let cells: [Made; 4] = [
        ("a", "mail.fio", "MB/s", true, &[100.0, 100.0, 100.0, 104.0]),
        ("a", "mail.fio", "ms", false, &[5.0, 6.0, 6.0, 9.0]),
        ("a", "scan", "MB/s", true, &[100.0, 100.0, 100.0, 100.0]),
        ("b", "mail.fio", "ms", false, &[5.0, 6.0, 6.0, 9.0]),
    ];
    let (_, analysis) = analysed(&TODAY, &cells);
    let names = [
        Some("bulk write"),
        Some("reader p99"),
        None,
        Some("reader p99"),
    ];
    let all = analysis.cells.iter().zip(names);
    let rows: Vec<Judged> = all
        .map(|(c, row)| Judged {
            place: c.device.clone(),
            row: row.map(str::to_owned),
            ..Judged::new(c.workload.clone(), c)
        })
        .collect();
    let text = rendered(&analysis, &rows, 24, 100);
    let table = text.split_once("WORKLOAD").expect("a table").1;
    let heads: Vec<&str> = table
        .lines()
        .skip(1)
        .map(|l| l.split("  ").find(|w| !w.is_empty()).unwrap_or("").trim())
        .take(7)
        .collect();
    assert_eq!(
        heads,
        [
            "a",
            "mail.fio",
            "bulk write, MB/s",
            "reader p99, ms",
            "scan, MB/s",
            "b",
            "mail.fio"
        ],
        "{text}"
    );
    for line in [
        "a\n",
        "\n  mail.fio\n    bulk write, MB/s  ",
        "\n  scan, MB/s ",
    ] {
        assert!(table.contains(line), "{line:?}\n{text}");
    }
    assert_eq!(rows[1].called(), "a: mail.fio reader p99");
}

#[test]
fn many_schedulers_are_printed_as_rows_and_excess_lines_are_counted() {
    let six = ["none", "mq-deadline", "kyber", "bfq", "adios", "turns"];
    let figures = [5.0, 5.3, 5.3, 9.0, 9.0, 9.9];
    let one: Made = ("a", "copy", "ms", false, &figures);
    let (_, analysis) = analysed(&six, &[one]);
    let text = rendered(&analysis, &rows(&analysis), 24, 80);
    for line in [
        "  SCHEDULER             copy, ms\n  none         5.01 best\n",
        "  bfq          9.02 1.80x slower\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let many: Vec<String> = (0..30).map(|i| format!("copy{i}")).collect();
    let many: Vec<Made> = many
        .iter()
        .map(|n| ("a", n.as_str(), "ms", false, &figures[..]))
        .collect();
    let (_, analysis) = analysed(&six, &many);
    let text = rendered(&analysis, &rows(&analysis), 24, 80);
    assert!(text.lines().count() <= 24, "{text}");
    let words = "`none` best, next 1.06x slower, turns unclear";
    let shown = text.lines().filter(|l| l.contains(words));
    let shown = shown.count();
    assert!(shown >= 15, "{text}");
    let rest = format!("and {} more tests: --details", 30 - shown);
    assert!(text.contains(&rest), "{text}");
}
