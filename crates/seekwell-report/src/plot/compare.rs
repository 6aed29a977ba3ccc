//! The picture of a comparison: the value of each scheduler, by device and workload.

use super::bars::{Bar, Column, bars};
use super::{Anchor, LEFT, Picture, WIDE, lines};
use crate::unfinished::Unfinished;
use crate::units::{three, time_ns};
use seekwell_core::result::Record;
use seekwell_lab::analysis::single::standing;

/// Runs of the same workload that differ only in the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Title of the workload.
    pub title: &'a str,
    /// Runs that are compared.
    pub records: &'a [Record],
    /// Runs that are not compared.
    pub rest: &'a [Unfinished],
}

/// Returns the value of a run for its bar, and its text. The value is the workload's own metric, or
/// else a mean latency in ms.
fn figure(r: &Record, all: &[Record]) -> Option<(f64, String)> {
    let ms = |ns: f64| Some((ns / 1e6, time_ns(ns)));
    match &r.metric {
        Some(m) => Some((m.value, three(m.value))),
        // A run that ended early has no metric.
        None if all.iter().any(|r| r.metric.is_some()) => None,
        None if all.iter().all(|r| r.read.ios > 0) => ms(r.read.latency.mean_ns()),
        None => ms(r.write.latency.mean_ns()),
    }
}

fn name(records: &[Record]) -> String {
    match records.iter().find_map(|r| r.metric.as_ref()) {
        Some(m) => {
            let better = if m.higher_is_better {
                "higher"
            } else {
                "lower"
            };
            format!("{}, {} ({better} is better)", m.name, m.unit)
        }
        None if records.iter().all(|r| r.read.ios > 0) => "mean read latency".to_owned(),
        None => "mean write latency".to_owned(),
    }
}

/// Returns a picture with one bar chart per side; `devices` contains the heading of each device and
/// its sides.
pub fn compare(heading: &str, devices: &[(String, Vec<Side<'_>>)]) -> String {
    let mut p = Picture::new(heading);
    for (device, sides) in devices {
        p.paragraph(device, "dim");
        for side in sides {
            p.y += 10.0;
            for line in lines(side.title, 14.0, WIDE - 2.0 * LEFT) {
                p.y += 18.0;
                p.styled(LEFT, p.y, 14.0, "", Anchor::Start, true, &line);
            }
            if !side.records.is_empty() {
                draw_workload(&mut p, side.records);
            }
            for u in side.rest {
                p.paragraph(&format!("not compared: {}: {}", u.label, u.why), "bad");
            }
        }
        p.y += 12.0;
    }
    p.finish()
}

fn draw_workload(p: &mut Picture, records: &[Record]) {
    let best = standing(records).map(|s| s.leaders()).unwrap_or_default();
    let rows: Vec<String> = records.iter().map(|r| r.scheduler.spec.clone()).collect();
    let bar = |(i, r): (usize, &Record)| {
        let (value, text) = figure(r, records)?;
        Some(Bar {
            value,
            text,
            range: None,
            best: best.contains(&i),
        })
    };
    let column = Column {
        name: name(records),
        bars: records.iter().enumerate().map(bar).collect(),
    };
    bars(p, &rows, &[column]);
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use seekwell_core::result::Metric;

    fn record(name: &str, value: f64) -> Record {
        let mut r = Record::default();
        r.scheduler.spec = name.to_owned();
        r.metric = Some(Metric {
            name: "create".to_owned(),
            unit: "files/s".to_owned(),
            value,
            higher_is_better: true,
            n: 1000,
            ..Metric::default()
        });
        r
    }

    #[test]
    fn picture_shows_every_scheduler_with_its_recorded_number() {
        let records = [
            record("noop", 12.34),
            record("cfq:slice_idle=0", 99.5),
            record("<img onerror=1>", 0.0),
        ];
        let cut = Unfinished {
            label: "bfq & co".to_owned(),
            why: "not begun".to_owned(),
            record: None,
        };
        let side = Side {
            title: "fs-mark: create files, fsync each before closing it (files=60)",
            records: &records,
            rest: &[cut],
        };
        let device = "On a modelled disk, not one of yours: a <b> disk".to_owned();
        let svg = compare("seekwell compare", &[(device, vec![side])]);
        check::well_formed(&svg);
        check::no_overlap(&svg);
        for r in &records {
            let m = r.metric.as_ref().expect("set above");
            let shown = super::super::escaped(&r.scheduler.spec);
            assert!(svg.contains(&format!(">{shown}</text>")), "{shown}");
            assert!(svg.contains(&format!("data-value=\"{}\"", m.value)));
            assert!(svg.contains(&format!(">{}</text>", three(m.value))));
        }
        assert!(svg.contains("bfq &amp; co: not begun") && !svg.contains("<img"));
        assert_eq!(svg.matches("class=\"best\"").count(), 1, "the winner");
        assert!(svg.contains("higher is better"));
    }

    #[test]
    fn run_without_metric_is_drawn_by_latency() {
        let mut r = record("noop", 0.0);
        r.metric = None;
        r.read.ios = 1;
        r.read.latency.record(2_500_000);
        let side = Side {
            title: "replay",
            records: &[r],
            rest: &[],
        };
        let svg = compare("a trace", &[("a disk".to_owned(), vec![side])]);
        check::well_formed(&svg);
        assert!(svg.contains("mean read latency") && svg.contains("data-value=\"2.5\""));
    }
}
