use super::*;
use crate::advice::{Advice, all};
use seekwell_lab::analysis::analyse;
use seekwell_lab::results::{About, Cell, Method, MetricInfo, Run, RunKey, Throttled, Value};
use std::sync::Arc;

/// A treatment: its label, the throttling target of its queue, and its mean in ms.
type Row = (&'static str, u64, f64);

/// Returns the results of five blocks of latencies that vary by 0.01 %.
fn results(rows: &[Row]) -> Results {
    let metric = MetricInfo {
        name: "read mean".to_owned(),
        unit: "ms".to_owned(),
        ..MetricInfo::default()
    };
    let treatment = |row: &Row| {
        let (name, set) = row.0.split_once(':').unwrap_or((row.0, ""));
        let set = set.split_once('=');
        Treatment {
            label: row.0.to_owned(),
            scheduler: name.to_owned(),
            tunables: set
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect(),
            ..Treatment::default()
        }
    };
    let cell = Cell {
        name: "disk / reader".to_owned(),
        device: "disk".to_owned(),
        workload: "reader".to_owned(),
        primary: metric.clone(),
        treatments: (0..rows.len()).collect(),
        throttled: rows
            .iter()
            .enumerate()
            .map(|(treatment, row)| Throttled {
                treatment,
                wbt_lat_usec: row.1,
            })
            .collect(),
        ..Cell::default()
    };
    let metric = Arc::new(metric);
    let run = |block: u32, treatment: usize, mean: f64| Run {
        key: RunKey {
            cell: 0,
            block,
            treatment,
        },
        values: vec![Value {
            metric: Arc::clone(&metric),
            value: mean * (1.0 + 1e-4 * f64::from((block + treatment as u32) % 7)),
            n: 100,
        }],
        ..Run::default()
    };
    let runs = (0..5).flat_map(|b| (0..rows.len()).map(move |t| (b, t)));
    Results {
        about: About {
            method: Method::default(),
            paired: true,
            ..About::default()
        },
        cells: vec![cell],
        treatments: rows.iter().map(treatment).collect(),
        runs: runs.map(|(b, t)| run(b, t, rows[t].2)).collect(),
        ..Results::default()
    }
}

fn advised(rows: &[Row]) -> Advice {
    let r = results(rows);
    all(&r, &analyse(&r)).remove(0)
}

#[test]
fn throttling_line_states_the_setting_of_each_scheduler() {
    let of = |rows: &[Row]| line(&results(rows));
    assert_eq!(
        of(&[
            ("none", 2000, 1.0),
            ("none:wbt_lat_usec=0", 0, 1.0),
            ("mq-deadline", 2000, 1.0),
            ("bfq", 0, 1.0),
        ]),
        "Writeback throttling (wbt_lat_usec): none, mq-deadline 2000; none:wbt_lat_usec=0, bfq off."
    );
    let told = of(&[("bfq:wbt_lat_usec=2000", 0, 1.0), ("none", 2000, 1.0)]);
    assert!(
        told.contains("bfq:wbt_lat_usec=2000 had no effect: bfq keeps throttling off")
            && told.contains("write 2001."),
        "{told}"
    );
    // With two devices.
    let mut r = results(&[("none", 2000, 1.0), ("bfq", 0, 1.0)]);
    let mut other = r.cells[0].clone();
    other.device = "spinning".to_owned();
    other.throttled[0].wbt_lat_usec = 75_000;
    r.cells.push(other);
    assert_eq!(
        line(&r),
        "Writeback throttling (wbt_lat_usec): none 2000 on disk, 75000 on spinning; bfq off."
    );
    r.cells.iter_mut().for_each(|c| c.throttled.clear());
    assert_eq!(line(&r), "");
}

/// Latency of a reader during heavy writes on a SATA SSD, in ms.
#[test]
fn lead_due_to_throttling_is_attributed_to_throttling() {
    let a = advised(&[
        ("mq-deadline", 2000, 5.45),
        ("mq-deadline:wbt_lat_usec=0", 0, 304.0),
        ("none", 2000, 5.6),
        ("none:wbt_lat_usec=0", 0, 234.0),
        ("bfq", 0, 219.0),
        ("bfq:wbt_lat_usec=2001", 2001, 5.55),
    ]);
    assert_eq!(
        a.headline,
        "Keep mq-deadline; its lead is due to the throttle"
    );
    assert_eq!(
        a.throttling,
        "The throttle makes the difference, not the scheduler: with wbt_lat_usec 2000 mq-deadline is \
         56 times ahead of itself with throttling off, and within 2 % of bfq with the same throttle."
    );
}

#[test]
fn recommended_setting_is_printed_with_its_commands() {
    let a = advised(&[
        ("mq-deadline", 75_000, 20.0),
        ("mq-deadline:wbt_lat_usec=0", 0, 150.0),
        ("bfq", 0, 60.0),
        ("bfq:wbt_lat_usec=75001", 75_001, 9.0),
    ]);
    assert_eq!(a.headline, "Take bfq with wbt_lat_usec=75001");
    assert!(
        a.throttling.starts_with("Throttle and scheduler both"),
        "{}",
        a.throttling
    );
    assert!(
        a.throttling.contains("2.2 times ahead of mq-deadline"),
        "{}",
        a.throttling
    );
    let apply = a.apply.expect("a kernel of today has it");
    assert!(
        apply
            .command
            .ends_with("bfq --device DEVICE --persist --tunable wbt_lat_usec=75001")
    );
    assert_eq!(
        apply.sysfs[1],
        "echo 75001 > /sys/block/DEVICE/queue/wbt_lat_usec"
    );
    assert!(
        apply.udev.ends_with("ATTR{queue/wbt_lat_usec}=\"75001\""),
        "{}",
        apply.udev
    );
}

#[test]
fn lead_due_to_the_scheduler_is_attributed_to_the_scheduler() {
    let a = advised(&[
        ("none", 2000, 20.0),
        ("none:wbt_lat_usec=0", 0, 20.0),
        ("bfq", 0, 9.0),
        ("bfq:wbt_lat_usec=2001", 2001, 9.0),
    ]);
    assert!(a.headline.starts_with("Take bfq"), "{}", a.headline);
    assert!(
        a.throttling
            .starts_with("The scheduler makes the difference, not the throttle"),
        "{}",
        a.throttling
    );
    // There is no statement if each treatment ran with one throttling target only.
    let a = advised(&[("none", 2000, 20.0), ("bfq", 0, 9.0)]);
    assert_eq!(a.throttling, "");
}
