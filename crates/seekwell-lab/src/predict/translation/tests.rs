//! Tests of the translation from a real queue to a simulated one.

use super::*;
use seekwell::{SchedulerSpec, WorkloadSpec};
use seekwell_host::PerScheduler;
use std::collections::BTreeMap;

/// Returns a machine with a SATA SSD, every setting of which differs from the simulator's defaults.
fn machine() -> MachineFacts {
    let own = PerScheduler {
        nr_requests: Some(48),
        wbt_lat_usec: Some(2_000),
    };
    MachineFacts {
        device: "sda".to_owned(),
        disk: "SATA".to_owned(),
        scheduler: "mq-deadline".to_owned(),
        offered: ["none", "mq-deadline", "bfq"].map(str::to_owned).to_vec(),
        under: BTreeMap::from([("mq-deadline".to_owned(), own)]),
        rotational: Some(false),
        write_back: Some(true),
        depth: Some(16),
        tags: Some(32),
        hw_queues: Some(2),
        max_sectors_kb: Some(512),
        max_segments: Some(100),
        nomerges: Some(1),
        read_ahead_kb: Some(256),
        kernel: "6.12.4-1".to_owned(),
        hz: Some(1000),
        cpus: Some(3),
        memory_bytes: Some(1 << 30),
        dirty: [
            ("dirty_ratio", 0),
            ("dirty_bytes", 1 << 24),
            ("dirty_background_ratio", 5),
            ("dirty_background_bytes", 0),
            ("dirty_expire_centisecs", 1_000),
            ("dirty_writeback_centisecs", 200),
        ]
        .map(|(name, n)| (name.to_owned(), n))
        .into(),
        fs: "ext4".to_owned(),
        mount_options: "rw,commit=30".to_owned(),
        ..MachineFacts::default()
    }
}

fn carried(facts: &MachineFacts, scheduler: &str, tunables: &[(&str, &str)]) -> RunSpec {
    let t = Translation::new(facts, "ssd:sata-tlc-1t").expect("a preset");
    let tunables = tunables
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    let mut spec = RunSpec {
        substrate: Substrate::Host,
        ..RunSpec::new(
            DeviceSpec::default(),
            SchedulerSpec {
                name: scheduler.to_owned(),
                version: None,
                tunables: tunables.collect(),
            },
            WorkloadSpec::Script {
                name: "fs-mark".to_owned(),
                params: BTreeMap::new(),
            },
        )
    };
    t.carry(&mut spec);
    spec
}

#[test]
fn every_setting_of_the_queue_and_the_machine_is_carried() {
    let spec = carried(&machine(), "mq-deadline", &[("iostats", "1")]);
    let q = &spec.queue;
    assert_eq!((q.max_sectors_kb, q.max_segments), (Some(512), Some(100)));
    assert_eq!((q.nomerges, q.hz, q.depth), (1, 1000, Some(16)));
    assert_eq!(q.nr_requests, Some(48));
    let m = spec.machine.clone().expect("a machine");
    assert_eq!((m.cores, m.memory_bytes), (Some(3), Some(1 << 30)));
    assert_eq!((m.read_ahead_kb, m.commit_s), (Some(256), Some(30)));
    assert_eq!((m.dirty_bytes, m.dirty_ratio), (Some(1 << 24), None));
    assert_eq!(
        (m.dirty_background_ratio, m.dirty_background_bytes),
        (Some(5), None)
    );
    assert_eq!(m.dirty_expire_centisecs, Some(1_000));
    assert_eq!(m.dirty_writeback_centisecs, Some(200));
    assert_eq!(spec.device.spec, "ssd:sata-tlc-1t,hw_queues=2");
    assert_eq!(spec.scheduler.versioned(), "mq-deadline-6.12");
    assert_eq!(spec.scheduler.tunables.len(), 1, "iostats has no model");
    assert_eq!(spec.scheduler.tunables["wbt_lat_usec"], "2000");
    assert_eq!(spec.substrate, Substrate::Sim);
    seekwell::checked(&spec).expect("a valid run");
}

#[test]
fn throttling_follows_the_kernels_rule_under_schedulers_that_were_not_read() {
    let usec = |facts: &MachineFacts, scheduler: &str| {
        carried(facts, scheduler, &[]).scheduler.tunables["wbt_lat_usec"].clone()
    };
    let mut m = machine();
    // The default was read: bfq turns throttling off, and the others keep it.
    assert_eq!(
        (usec(&m, "bfq"), usec(&m, "none")),
        ("0".to_owned(), "2000".to_owned())
    );
    // A value that was written by hand stays under every scheduler, also 0.
    for (read, stays) in [(5_000, "5000"), (0, "0")] {
        m.under.get_mut("mq-deadline").expect("there").wbt_lat_usec = Some(read);
        assert_eq!(
            (usec(&m, "bfq").as_str(), usec(&m, "none").as_str()),
            (stays, stays)
        );
    }
    // Under bfq, 0 is the default, so the others have their own defaults.
    m.under = BTreeMap::from([(
        "bfq".to_owned(),
        PerScheduler {
            nr_requests: None,
            wbt_lat_usec: Some(0),
        },
    )]);
    assert_eq!(usec(&m, "none"), "2000");
    // A value of the experiment counts most.
    let own = carried(&m, "none", &[("wbt_lat_usec", "75")]);
    assert_eq!(own.scheduler.tunables["wbt_lat_usec"], "75");
}

#[test]
fn number_of_requests_is_derived_from_the_tags_after_a_switch() {
    let m = machine();
    let requests = |m: &MachineFacts, name: &str| carried(m, name, &[]).queue.nr_requests;
    assert_eq!(requests(&m, "mq-deadline"), Some(48), "as read");
    assert_eq!(requests(&m, "bfq"), Some(64), "twice the tags");
    assert_eq!(requests(&m, "none"), None, "the tags themselves");
    let many = MachineFacts {
        tags: Some(1023),
        ..machine()
    };
    assert_eq!(requests(&many, "bfq"), Some(256), "twice 128 at most");
    let set = carried(&m, "bfq", &[("nr_requests", "500")]);
    assert_eq!(set.queue.nr_requests, Some(500), "set by the experiment");
    assert!(!set.scheduler.tunables.contains_key("nr_requests"));
}

#[test]
fn what_the_simulation_lacks_is_listed() {
    let facts = MachineFacts {
        fs: "xfs".to_owned(),
        depth: Some(1023),
        rotational: Some(true),
        layers: vec!["dm-0 (LVM)".to_owned()],
        ..machine()
    };
    let t = Translation::new(&facts, "ssd:sata-tlc-1t").expect("a preset");
    let left = t.left().join("\n");
    for says in [
        "file system xfs",
        "queue depth 1023: 31 in the simulation",
        "rotational 1: 0 in the simulation",
        "dm-0 (LVM)",
        "speed of a core",
    ] {
        assert!(left.contains(says), "{says}: {left}");
    }
    let unknown = Translation::new(&MachineFacts::default(), "ssd:sata-tlc-1t").expect("a preset");
    let left = unknown.left().join("\n");
    assert!(
        left.contains("memory: unknown, default is assumed"),
        "{left}"
    );
    assert!(left.contains("dirty limits: unknown"), "{left}");
}

#[test]
fn both_sides_are_listed_with_the_settings_of_each_scheduler() {
    let t = Translation::new(&machine(), "ssd:sata-tlc-1t").expect("a preset");
    let all = t.settings(&["none", "mq-deadline", "bfq"]);
    let of = |name: &str| {
        let row = all.iter().find(|s| s.name == name);
        let row = row.unwrap_or_else(|| panic!("no row {name}"));
        (row.real.as_str(), row.simulated.as_str())
    };
    assert_eq!(of("max_sectors_kb"), ("512", "512"));
    assert_eq!(of("wbt_lat_usec, mq-deadline"), ("2000", "2000"));
    assert_eq!(of("wbt_lat_usec, bfq"), ("0", "0"));
    let state = |name: &str| all.iter().find(|s| s.name == name).map(|s| s.state);
    assert_eq!(state("wbt_lat_usec, bfq"), Some(State::Derived));
    assert_eq!(state("max_sectors_kb"), Some(State::Carried));
    assert_eq!(of("hardware queues"), ("2", "2"));
    assert_eq!(of("kernel"), ("6.12.4-1", "6.12"));
}
