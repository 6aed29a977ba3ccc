//! Runs the same scheduler twice with different seeds, under every built-in workload. The lab must
//! not find a difference. If both sides had the same seeds, every difference would be exactly 0,
//! and the test would prove nothing.

use seekwell_lab::analysis::analyse;
use seekwell_lab::conduct::{How, Memory, Simulated, conduct};
use seekwell_lab::experiment::{CellPlan, Deciding, Design, Experiment, Primary};
use seekwell_lab::results::{About, Cell, Method, StopRule, Treatment};
use seekwell_workload::workloads;

/// Every workload, shortened.
const SHORT: &[&str] = &[
    "fs-mark:files=5,workers=2",
    "blogbench:seconds=2s,readers=3,think=5ms",
    "compilebench:trees=2,reads=1,sources=50,objects=20,dirs=10",
    "iozone:size=1m,test=read",
    "tiobench:size=256k,random=20",
    "postmark:files=20,transactions=50",
    "pgbench:scale=1,transactions=100,segments=1",
    "sqlite:transactions=10",
    "androbench-io:size=1m,write_size=1m",
    "mysql-scan:size=8m",
    "hdparm:seconds=100ms,settle=0",
    "seeker:seconds=500ms",
    "random-read:size=8m,seconds=200ms,depth=4",
    "web:requests=100",
    "compile:files=10,headers=10",
    "app-start:starts=2,pause=1ms,libraries=5,small=5,bulk=1m",
    "interactive:seconds=500ms,size=4m,bulk=4m",
    "streams:size=8m,seconds=200ms",
    "fsync-latency:seconds=500ms,bulk=4m",
    "innodb:seconds=500ms,size=8m,threads=4,innodb_buffer_pool_size=2m",
];

/// Distance between the first seeds of the two sides.
const APART: u64 = 1_000_000;

fn experiment(schedulers: [&str; 2], apart: u64) -> Experiment {
    let cell = |workload: &&str| {
        let spec = |side: usize| {
            let mut spec = seekwell::spec(workload, "hdd:hitachi-7k200", schedulers[side]);
            let spec = spec.as_mut().expect("words that are good");
            spec.seed += side as u64 * apart;
            seekwell::checked(spec).expect("a specification that is good")
        };
        CellPlan {
            cell: Cell {
                name: (*workload).to_owned(),
                device: "hdd:hitachi-7k200".into(),
                workload: (*workload).to_owned(),
                substrate: "sim".into(),
                treatments: vec![0, 1],
                ..Cell::default()
            },
            deciding: Deciding::alone(Primary::Own),
            specs: vec![spec(0), spec(1)],
        }
    };
    let treatment = |label: &str| Treatment {
        label: label.into(),
        ..Treatment::default()
    };
    Experiment {
        about: About {
            name: "alike".into(),
            method: Method {
                alpha: 0.01,
                repeats_max: 10,
                stop: StopRule::Fixed,
                ..Method::default()
            },
            source: "experiment".into(),
            paired: true,
            ..About::default()
        },
        cells: SHORT.iter().map(cell).collect(),
        treatments: vec![treatment("one"), treatment("other")],
        text: String::new(),
        design: Design::default(),
    }
}

#[test]
fn same_scheduler_is_never_found_different_from_itself() {
    for w in workloads() {
        let named = |s: &&str| s.split(':').next() == Some(w.name);
        assert!(SHORT.iter().any(named), "{} is not here", w.name);
    }
    let carried_out = |e: &Experiment| {
        let mut store = Memory::default();
        let done = conduct(e, &Simulated::default(), &mut store, &How::default());
        let done = done.expect("memory holds it");
        assert_eq!(done.failed, 0, "{:?}", store.runs);
        analyse(&done.results(e, store.runs))
    };
    let a = carried_out(&experiment(["cfq", "cfq"], APART));
    let mut varied = 0;
    for cell in &a.cells {
        let c = &cell.comparisons[0];
        println!("{}: p {:?}, {}", cell.name, c.p, c.words);
        assert!(!c.verdict.claims(), "{}: {}", cell.name, c.words);
        varied += usize::from(c.sd.is_some_and(|sd| sd > 0.0));
    }
    assert!(varied >= SHORT.len() / 2, "seeds matter in {varied} only");
    // The same test must find real differences. Here two schedulers serve a writer, and a reader
    // that thinks between its reads.
    let b = carried_out(&experiment(["noop", "cfq"], 0));
    let found = b.cells.iter().filter(|c| c.comparisons[0].verdict.claims());
    let found: Vec<&str> = found.map(|c| c.name.as_str()).collect();
    assert!(!found.is_empty(), "it finds nothing at all");
    println!("noop and cfq differ under {found:?}");
}
