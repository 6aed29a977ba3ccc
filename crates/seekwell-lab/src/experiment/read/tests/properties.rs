//! Tests that a written design reads back as the same design, and that no text crashes the reader.

use super::*;
use crate::data::Method;
use crate::experiment::{Level, Pick};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use seekwell::QueueSpec;
use seekwell::words;

const DEVICES: &[&str] = &[
    "hdd:hitachi-7k200",
    "ssd:nvme-dc-2t,state=used",
    "constant:depth=4,service_us=50",
    "raid1:members=2,of=(hdd:hitachi-7k500,write_cache=no)",
];
const SCHEDULERS: &[&str] = &[
    "noop",
    "cfq-3.4:slice_idle=0",
    "mq-deadline:fifo_batch=1",
    "bfq",
    "bfq-v7r8",
];
const WORKLOADS: &[&str] = &[
    "hdparm",
    "pgbench:profile=s3700-small,clients=3",
    "pgbench",
    "sqlite:kinds=update",
];
const MACHINES: &[&str] = &[
    "",
    "memory=1G,cores=3,limit=90",
    "kernel=3.4,without=readahead+plugging,aged=64",
];
const QUEUES: &[(Option<u32>, u8)] = &[(None, 0), (Some(64), 2)];

fn methods() -> impl Strategy<Value = Method> {
    let numbers = (1u32..1000, 1u32..1000, 1u32..400, 0u64..i64::MAX as u64);
    let options = (
        proptest::option::of(1u64..100_000),
        proptest::option::of(0u32..10_000_000),
    );
    let words = (select(top::STOPS), select(top::ORDERS), any::<bool>());
    (numbers, options, words).prop_map(
        |((a, b, c, seed), (budget_s, warmup), (stop, order, carried))| Method {
            margin: f64::from(a) / 1001.0,
            alpha: complement(1.0 - f64::from(c) / 1000.0),
            repeats_min: a.min(b),
            repeats_max: a.max(b),
            target: f64::from(b) / 1001.0,
            fraction: f64::from(c) / 500.0,
            stop: stop.1,
            order: order.1,
            seed,
            budget_s,
            warmup_s: warmup.map(|ms| f64::from(ms) / 1000.0),
            carried,
        },
    )
}

fn designs() -> impl Strategy<Value = Design> {
    let some = |all: &'static [&'static str]| subsequence(all, 1..=all.len());
    let parts = (
        some(DEVICES),
        some(SCHEDULERS),
        some(WORKLOADS),
        subsequence(MACHINES, 0..=3),
    );
    let more = (
        subsequence(QUEUES, 0..=2),
        // Characters that control a terminal are not allowed in a name.
        "[^/\\x00-\\x1f\\x7f-\\x9f\\x{61c}\\x{200e}\\x{200f}\\x{2028}-\\x{202e}\\x{2066}-\\x{2069}]{1,20}",
        ".{0,20}",
        any::<[bool; 4]>(),
    );
    (methods(), parts, more).prop_map(|(method, (d, s, w, m), (q, name, description, how))| {
        let mut design = Design {
            name: format!("x{name}"),
            description,
            method,
            devices: d
                .iter()
                .map(|t| words::device(t).expect("good").into())
                .collect(),
            workloads: w
                .iter()
                .map(|t| words::workload(t, &[]).expect("good").into())
                .collect(),
            machines: m
                .iter()
                .map(|t| words::machine(t).expect("good").into())
                .collect(),
            ..Design::default()
        };
        for text in s {
            design
                .schedulers
                .push(words::scheduler(text).expect("good").into());
        }
        for (nr_requests, nomerges) in q {
            design.queues.push(Level::unnamed(QueueSpec {
                nr_requests,
                nomerges,
                ..QueueSpec::default()
            }));
        }
        if how[0] {
            design.reference = design.schedulers.last().and_then(|s| s.name.clone());
        }
        if how[1] {
            design.workloads[0].spec.metric = Some("block read p99.9".to_owned());
            design.workloads[0].spec.limit_s = Some(77);
        }
        if how[2] {
            design.devices[0].name = Some("my \"disk\"".to_owned());
            design.devices[0]
                .axes
                .insert("depth".to_owned(), "4".to_owned());
        }
        if how[3] && design.devices.len() > 1 {
            let device = Some("my*".to_owned()).filter(|_| how[2]);
            let only = Pick {
                workload: Some("*".to_owned()),
                ..Pick::default()
            };
            design.only = vec![only];
            design.exclude = device
                .map(|d| Pick {
                    device: Some(d),
                    ..Pick::default()
                })
                .into_iter()
                .collect();
        }
        design
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A comparison from a command line is stored as a file. Reading this file must give the same
    /// experiment.
    #[test]
    fn written_experiment_is_read_back_unchanged(design in designs()) {
        let one = Experiment::from_specs(design).unwrap_or_else(|e| panic!("{e}"));
        let text = one.to_toml();
        let again = Experiment::from_toml(&text, Path::new("/nowhere"));
        let again = again.unwrap_or_else(|e| panic!("{e}\n--\n{text}"));
        prop_assert_eq!(&again.text, &text);
        same(&one, &again);
        // Writing the experiment again must give the same text.
        prop_assert_eq!(again.to_toml(), text);
    }

    /// Any text must give an experiment or faults.
    #[test]
    fn any_text_is_parsed_or_rejected_without_panic(text in "[\\[\\]{}a-z\"'=:,.0-9 \n#]{0,120}") {
        let _ = Experiment::from_toml(&text, Path::new("/nowhere"));
    }
}
