//! Shows a run that ended early next to complete runs.

use seekwell_core::result::{Metric, Record};
use seekwell_report::compare::comparison;

fn run(scheduler: &str, metric: Option<f64>) -> Record {
    let mut r = Record {
        duration_ns: 1_000_000_000,
        ..Record::default()
    };
    r.scheduler.spec = scheduler.to_owned();
    (r.read.ios, r.read.bytes) = (100, 409_600);
    r.metric = metric.map(|value| Metric {
        name: "IOPS".to_owned(),
        unit: "I/Os/s".to_owned(),
        value,
        higher_is_better: true,
        ..Metric::default()
    });
    r
}

#[test]
fn run_without_its_metric_shows_a_dash() {
    for early in [0, 1, 2] {
        let mut all = vec![
            run("noop", Some(11.0)),
            run("deadline", Some(22.0)),
            run("cfq", Some(33.0)),
        ];
        all[early].metric = None;
        let text = comparison("a test", &all, None, 120);
        assert!(text.contains("I/Os/s"), "{text}");
        let line = |name: &str| {
            let of = text.lines().find(|l| l.contains(name) && l.contains("B/s"));
            of.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
        };
        for (i, name) in ["noop", "deadline", "cfq"].into_iter().enumerate() {
            assert_eq!(line(name).contains(" - "), i == early, "{text}");
        }
    }
}
