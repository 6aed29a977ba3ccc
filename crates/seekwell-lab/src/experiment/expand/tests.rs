use super::*;
use crate::experiment::Pick;
use seekwell::{aligned, checked, words};
use std::collections::BTreeSet;

/// Builds a design from texts of a command line.
pub fn design(devices: &[&str], schedulers: &str, workloads: &[&str]) -> Design {
    let device = |d: &&str| Level::unnamed(words::device(d).expect("a device"));
    let workload = |w: &&str| Level::from(words::workload(w, &[]).expect("a workload"));
    Design {
        name: "test".to_owned(),
        devices: devices.iter().map(device).collect(),
        schedulers: words::schedulers(schedulers)
            .expect("schedulers")
            .into_iter()
            .map(Level::from)
            .collect(),
        workloads: workloads.iter().map(workload).collect(),
        ..Design::default()
    }
}

fn expanded(design: Design) -> Experiment {
    Experiment::from_specs(design).unwrap_or_else(|e| panic!("{e}"))
}

fn faults_of(design: Design) -> String {
    match Experiment::from_specs(design) {
        Ok(e) => panic!("{} cells", e.cells.len()),
        Err(e) => e.to_string(),
    }
}

#[test]
fn words_are_expanded_to_cells_with_short_names() {
    let d = design(
        &["hdd:hitachi-7k200", "ssd:nvme-dc-2t"],
        "noop,mq-deadline,none",
        &["fs-mark:files=5", "pgbench:clients=1", "pgbench:clients=16"],
    );
    let e = expanded(d);
    let names: Vec<&str> = e.cells.iter().map(|c| &*c.cell.name).collect();
    assert_eq!(
        names,
        [
            "hitachi-7k200 / fs-mark",
            "hitachi-7k200 / pgbench clients=1",
            "hitachi-7k200 / pgbench clients=16",
            "nvme-dc-2t / fs-mark",
            "nvme-dc-2t / pgbench clients=1",
            "nvme-dc-2t / pgbench clients=16",
        ]
    );
    let reference = |i: usize| &*e.treatments[e.cells[i].cell.reference].label;
    assert_eq!((reference(0), reference(3)), ("mq-deadline", "none"));
    let primary = &e.cells[0].cell.primary;
    assert_eq!((&*primary.name, primary.step), ("files", Some(0.1)));
    assert!(primary.higher_is_better);
}

/// The parts of runs are checked by combinations of factors. The result must be the same as if each
/// complete run were checked.
#[test]
fn expanded_runs_equal_individually_checked_ones() {
    let mut d = design(
        &["hdd:hitachi-7k200", "raid1:members=2,of=hdd:hitachi-7k500"],
        "cfq-3.4:slice_idle=0,bfq,mq-deadline:fifo_batch=1",
        &["streams:seconds=1s", "sqlite:kinds=update"],
    );
    for m in ["", "kernel=3.4,cores=2,limit=9"] {
        d.machines
            .push(words::machine(m).expect("a machine").into());
    }
    let many = QueueSpec {
        nr_requests: Some(64),
        ..QueueSpec::default()
    };
    d.queues = vec![QueueSpec::default().into(), many.into()];
    d.method.seed = 7;
    let e = expanded(d);
    assert_eq!(e.cells.len(), 2 * 2 * 2 * 2);
    for c in &e.cells {
        assert_eq!(c.specs.len(), 3);
        let mut again = c.specs.clone();
        for s in &mut again {
            assert_eq!((s.seed, s.repeat), (7, 0));
            *s = checked(s).unwrap_or_else(|e| panic!("{e}"));
        }
        aligned(&mut again).expect("aligned");
        assert_eq!(again, c.specs, "{}", c.cell.name);
        // Kernel generations have different limits for the size of a request. All runs use the
        // smallest limit.
        let kb: BTreeSet<_> = c.specs.iter().map(|s| s.queue.max_sectors_kb).collect();
        assert!(kb.len() == 1 && !kb.contains(&None), "{kb:?}");
    }
    assert_eq!(
        e.cells[0]
            .deciding
            .primary
            .info(&e.cells[0].specs[0].workload)
            .name,
        "streams"
    );
    let sqlite = e.cells.iter().find(|c| c.cell.workload == "sqlite");
    assert_eq!(sqlite.map(|c| &*c.cell.primary.name), Some("update"));
}

#[test]
fn picks_select_runs_and_an_empty_pick_is_reported() {
    let two = || {
        design(
            &["hdd:hitachi-7k200", "ssd:nvme-dc-2t"],
            "cfq,none",
            &["hdparm"],
        )
    };
    let pick = |device: &str, scheduler: &str| Pick {
        device: Some(device.to_owned()),
        scheduler: Some(scheduler.to_owned()),
        ..Pick::default()
    };
    let mut d = two();
    d.exclude = vec![pick("nvme*", "cfq")];
    let e = expanded(d);
    assert_eq!(e.cells[0].cell.treatments, [0, 1]);
    assert_eq!(e.cells[1].cell.treatments, [1]);
    let mut d = two();
    d.only = vec![pick("hitachi*", "*"), pick("*", "none")];
    let e = expanded(d);
    assert_eq!(e.cells[1].cell.treatments, [1]);
    let mut d = two();
    d.exclude = vec![pick("nvme-dc-2", "cfq")];
    let text = faults_of(d);
    assert!(text.contains("did you mean `nvme-dc-2t`?"), "{text}");
    let mut d = two();
    d.exclude = vec![pick("*", "*")];
    assert!(faults_of(d).contains("leave nothing to run"));
}

#[test]
fn too_many_runs_are_rejected_with_the_product() {
    let mut d = design(&["hdd:hitachi-7k200"], "cfq", &["hdparm"]);
    d.devices = vec![d.devices[0].clone(); 1000];
    d.workloads = vec![d.workloads[0].clone(); 1000];
    assert_eq!(
        faults_of(d.clone()),
        "1000 devices x 1000 workloads = 1000000 cells, more than the limit of 10000; split \
         the experiment"
    );
    d.workloads.truncate(10);
    d.schedulers = vec![d.schedulers[0].clone(); 11];
    assert!(faults_of(d).starts_with("10000 cells x 11 schedulers = 110000 runs per block"));
}

#[test]
fn all_faults_are_reported_together() {
    let mut d = design(
        &["hdd:hitachi-7k200"],
        "cfq,cfq:slice_idle=0",
        &["hdparm", "pgbench", "hdparm"],
    );
    d.reference = Some("cfg".to_owned());
    d.workloads[1].spec.metric = Some("fsync p99".to_owned());
    d.schedulers[1]
        .spec
        .tunables
        .insert("slice_idl".into(), "1".into());
    let text = faults_of(d);
    for words in [
        "experiment.reference: no scheduler of the experiment is called \"cfg\"; did you mean `cfq`?",
        "workload: \"hdparm\" occurs twice: name it once, or give each its own `name`",
        "workload.metric: pgbench has no metric \"fsync p99\"; did you mean `fdatasync p99`?",
        "cfq has no tunable \"slice_idl\"; did you mean `slice_idle`?",
    ] {
        assert!(text.contains(words), "{words}\n--\n{text}");
    }
    let mut d = Design::default();
    d.method.repeats_max = 3;
    d.method.margin = 2.0;
    let text = faults_of(d);
    assert_eq!(text.lines().count(), 5, "{text}");
}

/// A thousand cells of ten treatments share their parts in memory, because texts take most of the
/// memory.
#[test]
fn a_thousand_cells_are_expanded_with_shared_parts() {
    let mut d = design(
        &["hdd:hitachi-7k200", "ssd:nvme-dc-2t"],
        "noop,deadline,cfq,none,mq-deadline,kyber,bfq,adios,zen,sio",
        &["pgbench"],
    );
    let workload = |n| words::workload(&format!("pgbench:clients={n}"), &[]).expect("good");
    d.workloads = (1..=500).map(|n| workload(n).into()).collect();
    let e = expanded(d);
    assert_eq!((e.cells.len(), e.treatments.len()), (1000, 10));
    assert_eq!(e.cells[999].cell.name, "nvme-dc-2t / pgbench clients=500");
    let labels: BTreeSet<_> = e.cells.iter().map(|c| &c.cell.name).collect();
    assert_eq!(labels.len(), 1000);
}
