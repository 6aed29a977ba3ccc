//! Imports published figures. For every pair of values in two publications, an independent program
//! computed the result that is expected here. The tests also check which of the published
//! differences are significant.

use seekwell_lab::analysis::{Analysis, CellAnalysis, Comparison, analyse, column_order};
use seekwell_lab::import::{Input, Options, import};
use seekwell_lab::results::Results;
use seekwell_lab::stats::Verdict;
use std::collections::BTreeMap;

const PHORONIX: &str = include_str!("imported/published/phoronix-linux-3.4.csv");
const ANDROBENCH: &str = include_str!("imported/published/androbench-moto-g.csv");
const PAIRS: &str = include_str!("imported/published/pairs.csv");

fn read(name: &str, text: &str) -> Results {
    let input = Input::of_bytes(name, text.as_bytes().to_vec()).expect("text");
    import(&[input], &Options::default()).expect("imported")
}

/// System, workload, metric, and the two schedulers.
type Key = [String; 5];

/// Returns the result of the independent program for each pair.
fn expected(seed: &str, totals: bool) -> BTreeMap<Key, BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(PAIRS.as_bytes());
    let names: Vec<String> = reader
        .headers()
        .expect("names")
        .iter()
        .map(str::to_owned)
        .collect();
    let mut out = BTreeMap::new();
    for record in reader.records() {
        let record = record.expect("a line");
        let row: BTreeMap<String, String> = names
            .iter()
            .cloned()
            .zip(record.iter().map(str::to_owned))
            .collect();
        if row["seed"] != seed || row["metric"].contains("total") != totals {
            continue;
        }
        let key = ["system", "workload", "metric", "scheduler_a", "scheduler_b"];
        out.insert(key.map(|k| row[k].clone()), row);
    }
    out
}

fn key(a: &Analysis, cell: &CellAnalysis, c: &Comparison) -> Key {
    let workload = cell
        .workload
        .strip_suffix(&format!(": {}", cell.metric.name));
    [
        match cell.machine.as_str() {
            "" => cell.device.clone(),
            machine => machine.to_owned(),
        },
        workload.unwrap_or(&cell.workload).to_owned(),
        cell.metric.name.clone(),
        a.treatments[c.one].clone(),
        a.treatments[c.other].clone(),
    ]
}

/// Returns every pair with its cell.
fn pairs(a: &Analysis) -> Vec<(&CellAnalysis, &Comparison)> {
    a.cells
        .iter()
        .flat_map(|cell| cell.pairs.iter().map(move |c| (cell, c)))
        .collect()
}

/// Compares a value with the four digits of the expected value.
fn near(got: Option<f64>, want: &str, what: &str) {
    let want: f64 = match want {
        "" => {
            assert!(got.is_none(), "{what}: {got:?}, expected none");
            return;
        }
        w => w.parse().expect("a number"),
    };
    let got = got.unwrap_or_else(|| panic!("{what}: none, expected {want}"));
    let allowed = 6e-4 * want.abs() + 6e-5;
    let allowed = if want.abs() < 1e-3 {
        6e-4 * want.abs()
    } else {
        allowed
    };
    assert!(
        (got - want).abs() <= allowed,
        "{what}: {got}, expected {want}"
    );
}

/// Checks every pair; counts those that differ at 0.05 uncorrected, within their cell, and over
/// all.
fn count_significant_pairs(
    r: &Results,
    want: &BTreeMap<Key, BTreeMap<String, String>>,
) -> [usize; 3] {
    let a = analyse(r);
    let all = pairs(&a);
    assert_eq!(all.len(), want.len());
    let mut counts = [0; 3];
    for (cell, c) in all {
        let key = key(&a, cell, c);
        let row = want.get(&key).unwrap_or_else(|| panic!("no pair {key:?}"));
        let at = |what: &str| format!("{key:?} {what}");
        let mean = |t: usize| {
            cell.sides
                .iter()
                .find(|s| s.treatment == t)
                .and_then(|s| s.mean)
        };
        let d = mean(c.one).zip(mean(c.other)).map(|(a, b)| a - b);
        near(d, &row["difference"], &at("difference"));
        near(c.ratio, &row["ratio"], &at("ratio"));
        near(c.p, &row["p"], &at("p"));
        // If both errors are 0, these values are not defined.
        near(
            c.df.filter(|_| !row["df"].is_empty()),
            &row["df"],
            &at("df"),
        );
        let low = c.ratio95.map(|i| i.0);
        near(low, &row["ratio_ci95_low"], &at("low"));
        near(c.ratio95.map(|i| i.1), &row["ratio_ci95_high"], &at("high"));
        near(c.p_cell, &row["p_holm_cell"], &at("p within the cell"));
        near(c.p_adjusted, &row["p_holm_seed"], &at("p over all"));
        near(
            c.p_rounded,
            &row["p_rounding_worst"],
            &at("p with rounding"),
        );
        let said = [
            "significant_05",
            "significant_holm_cell",
            "significant_holm_seed",
        ];
        for (i, (p, said)) in [c.p, c.p_cell, c.p_adjusted].iter().zip(said).enumerate() {
            let holds = p.is_some_and(|p| p < 0.05);
            assert_eq!(holds, row[said] == "yes", "{}", at(said));
            counts[i] += usize::from(holds);
        }
    }
    counts
}

/// Of 175 pairs in the Phoronix article, 59 differ without correction, 54 with correction within
/// their cell, and 18 with correction over all.
#[test]
fn of_175_published_pairs_18_differ_after_correction() {
    let r = read("phoronix.csv", PHORONIX);
    assert_eq!(
        (r.cells.len(), r.treatments.len(), r.summaries.len()),
        (59, 3, 176)
    );
    assert_eq!(
        count_significant_pairs(&r, &expected("000", false)),
        [59, 54, 18]
    );
    // Rounding changes no verdict at 0.05.
    for (_, c) in pairs(&analyse(&r)) {
        let holds = |p: Option<f64>| p.is_some_and(|p| p < 0.05);
        assert_eq!(holds(c.p), holds(c.p_rounded), "{c:?}");
    }
}

/// Of 108 pairs in AndroBench, 6 differ at 0.05, which chance could explain. After correction none
/// differs.
#[test]
fn of_108_published_pairs_of_nine_schedulers_none_differs_after_correction() {
    let parts: Vec<&str> = ANDROBENCH
        .lines()
        .filter(|l| !l.contains("total"))
        .collect();
    let r = read("androbench.csv", &parts.join("\n"));
    assert_eq!(
        count_significant_pairs(&r, &expected("001", false)),
        [6, 0, 0]
    );
}

/// The totals are sums of the other figures. Their errors are computed from those of the parts,
/// with nine runs per side.
#[test]
fn errors_of_totals_are_propagated_from_their_parts() {
    let mut reader = csv::Reader::from_reader(ANDROBENCH.as_bytes());
    let mut squares: BTreeMap<String, f64> = BTreeMap::new();
    let mut totals: Vec<(String, String)> = Vec::new();
    for record in reader.records() {
        let f: Vec<String> = record.expect("a line").iter().map(str::to_owned).collect();
        if f[3].contains("total") {
            totals.push((f[6].clone(), f[7].clone()));
        } else {
            let sd: f64 = f[8].parse().expect("an SD");
            *squares.entry(f[6].clone()).or_default() += sd * sd / 3.0;
        }
    }
    let mut text = "system,workload,metric,unit,direction,scheduler,value,se,n\n".to_owned();
    for (scheduler, value) in totals {
        let se = squares[&scheduler].sqrt() / 3.0;
        text += &format!(
            "Motorola Moto G,AndroBench 3.4 (default settings),\
             \"SQLite total (mean of insert, update, delete)\",TPS,higher,{scheduler},{value},{se:e},9\n"
        );
    }
    let r = read("totals.csv", &text);
    let want = expected("001", true);
    assert_eq!(want.len(), 36);
    let a = analyse(&r);
    for (cell, c) in pairs(&a) {
        let row = &want[&key(&a, cell, c)];
        let side = |t: usize| cell.sides.iter().find(|s| s.treatment == t);
        let (one, other) = (side(c.one).expect("a side"), side(c.other).expect("a side"));
        let error = |s: &seekwell_lab::analysis::Side| s.se.expect("an error");
        let difference = one.mean.expect("a mean") - other.mean.expect("a mean");
        near(Some(difference), &row["difference"], "difference");
        near(
            Some(difference / error(one).hypot(error(other))),
            &row["t"],
            "t",
        );
        near(c.ratio, &row["ratio"], "ratio");
        // A file of totals does not show that its degrees of freedom come from three parts. It is
        // treated as nine runs per side, so p is smaller.
        assert!(c.p < Some(row["p"].parse().expect("a number")));
    }
}

/// PostMark's figures have a resolution of one second, so equal figures do not mean equal speed.
#[test]
fn metric_with_steps_of_a_second_gives_no_verdict() {
    let r = read("phoronix.csv", PHORONIX);
    let a = analyse(&r);
    let cells = a
        .cells
        .iter()
        .filter(|c| c.workload.starts_with("postmark"));
    let all: Vec<&Comparison> = cells.flat_map(|c| &c.comparisons).collect();
    assert_eq!(all.len(), 3);
    for c in all {
        assert_eq!(c.verdict, Verdict::CannotTell);
        let said = &c.words;
        assert!(
            said.starts_with("cannot tell: the metric has steps of"),
            "{said}"
        );
    }
}

/// On one laptop, nine of nineteen tests rank the schedulers in the order of the columns. By chance
/// it would be three.
#[test]
fn column_order_is_reported_if_it_explains_the_ranks() {
    let all = column_order(&analyse(&read("phoronix.csv", PHORONIX)));
    let of = |place: &str| all.iter().find(|o| o.place == place).expect("a laptop");
    let sandy = of("Sandy Bridge + SSD");
    assert_eq!((sandy.cells, sandy.best_first), (19, 9));
    assert!(sandy.p < 0.01, "{sandy:?}");
    let clarksfield = of("Clarksfield + SSD");
    assert_eq!(clarksfield.best_first, 8);
    let penryn = of("Penryn + HDD");
    assert_eq!(penryn.best_first, 1);
    assert!(penryn.p > 0.05, "{penryn:?}");
}

/// Rebuilds the page as text from the figures, in the layout of such pages. The overview is written
/// column by column, and the blocks row by row with the errors first. Four PostMark cells and one
/// of five lines of errors are missing.
fn page(glued: bool) -> String {
    let mut reader = csv::Reader::from_reader(PHORONIX.as_bytes());
    let rows: Vec<Vec<String>> = reader
        .records()
        .map(|r| r.expect("a line").iter().map(str::to_owned).collect())
        .collect();
    let machines = ["Penryn + HDD", "Sandy Bridge + SSD", "Clarksfield + SSD"];
    let schedulers = [("CFQ", "cfq"), ("Noop", "noop"), ("Deadline", "deadline")];
    let mut tests: Vec<[String; 3]> = Vec::new();
    for f in &rows {
        let test = [f[2].clone(), f[3].clone(), f[4].clone()];
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let find = |t: &[String; 3], machine: &str, scheduler: &str| {
        let same = |f: &&Vec<String>| f[2..5] == t[..] && f[0] == machine && f[6] == scheduler;
        rows.iter().find(same)
    };
    let mut text = "Linux IO Scheduler Testing\n\nDisk Details\n".to_owned();
    for m in machines {
        for (name, _) in schedulers {
            text += &format!("- {m}: {name}: {} / data=ordered,rw\n", name.to_uppercase());
        }
    }
    for t in &tests {
        text += &format!("{} ", t[0]);
    }
    text += &machines.join("");
    text += " CFQ Noop Deadline CFQ Noop Deadline CFQ Noop Deadline";
    for m in machines {
        for (_, s) in schedulers {
            for t in &tests {
                if let Some(f) = find(t, m, s) {
                    text += &format!(" {}", f[7]);
                }
            }
        }
    }
    for t in &tests {
        let better = if t[2] == "Seconds" { "Fewer" } else { "More" };
        text += &format!(
            "\n\nOpenBenchmarking.org{}, {better} Is Better\n{}",
            t[2], t[0]
        );
        // Two tests with the same name measure different things.
        if t[0].starts_with("iozone") {
            text += &format!(": {}", t[1]);
        }
        text += &format!("\n{}CFQNoopDeadline20406080100", machines.join(""));
        let of = machines
            .iter()
            .flat_map(|m| schedulers.map(|s| find(t, m, s.1)));
        let present: Vec<&Vec<String>> = of.flatten().collect();
        let skip = usize::from(t[0].starts_with("postmark"));
        for f in &present[skip..] {
            text += &format!("SE +/- {}, N = {}", f[8], f[10]);
            text += if glued { "" } else { "\n" };
        }
        let decimals = present.iter().all(|f| f[7].contains('.'));
        let between = if glued && decimals { "" } else { " " };
        text += if glued && decimals { "" } else { "\n" };
        text += &present
            .iter()
            .map(|f| f[7].as_str())
            .collect::<Vec<_>>()
            .join(between);
        text += "\n1. (CC) gcc options: -O2";
    }
    text + "\nPhoronix Test Suite v10.8.5\n"
}

/// The text of the page must give the figures of the table, including the four missing ones.
#[test]
fn page_saved_as_text_gives_the_published_table() {
    let table = read("phoronix.csv", PHORONIX);
    for glued in [false, true] {
        let r = read("page.txt", &page(glued));
        assert_eq!(r.about.source, "openbenchmarking-text");
        assert_eq!(
            (r.cells.len(), r.summaries.len()),
            (59, 176),
            "glued: {glued}"
        );
        let figures = |r: &Results| {
            let mut all: Vec<_> = r
                .summaries
                .iter()
                .map(|s| {
                    let c = &r.cells[s.cell];
                    let place = if c.machine.is_empty() {
                        &c.device
                    } else {
                        &c.machine
                    };
                    let test = c.workload.split(": ").next().expect("a name").to_owned();
                    let label = r.treatments[s.treatment].label.clone();
                    let f = format!("{} {:?} {:?}", s.mean, s.se, s.n);
                    (place.clone(), test, label, f)
                })
                .collect();
            all.sort();
            all
        };
        assert_eq!(figures(&r), figures(&table), "glued: {glued}");
        let notes = r.about.notes.join("\n");
        assert!(notes.contains("agree on all 176 values"), "{notes}");
        assert!(notes.contains("4 errors for 5 values"), "{notes}");
        let a = analyse(&r);
        let differ = pairs(&a);
        let holds = differ
            .iter()
            .filter(|c| c.1.p_adjusted.is_some_and(|p| p < 0.05));
        assert_eq!((differ.len(), holds.count()), (175, 18));
    }
}
