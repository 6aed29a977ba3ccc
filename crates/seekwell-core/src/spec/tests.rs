use super::*;
use crate::spec::read::fields;
use proptest::prelude::*;
use serde_json::{Value, json};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(own).collect()
}

/// Returns a specification with all optional parts and the given workload.
fn full(workload: WorkloadSpec) -> RunSpec {
    let device = DeviceSpec {
        spec: "my.toml,write_cache=no".into(),
        files: map(&[("my.toml", "kind = \"hdd\"")]),
    };
    let scheduler = SchedulerSpec {
        name: "deadline".into(),
        version: Some("3.4".into()),
        tunables: map(&[("writes_starved", "4"), ("fifo_batch", "1")]),
    };
    RunSpec {
        queue: QueueSpec {
            hz: 100,
            nr_requests: Some(64),
            depth: Some(8),
            max_sectors_kb: Some(512),
            max_segments: Some(168),
            nomerges: 2,
            virtio: true,
        },
        machine: Some(MachineSpec {
            kernel: Some("3.4".into()),
            cores: Some(2),
            memory_bytes: Some(512 << 20),
            cache_bytes: Some(64 << 20),
            fs: Some("ext3".into()),
            barriers: Some(false),
            aged_run_blocks: 64,
            placement: Some("first".into()),
            phase: Some("drawn".into()),
            read_ahead_kb: Some(512),
            cpu_permille: Some(600),
            data: Some("writeback".into()),
            commit_s: Some(30),
            dirty_ratio: Some(40),
            dirty_background_ratio: Some(5),
            dirty_bytes: Some(64 << 20),
            dirty_background_bytes: Some(32 << 20),
            dirty_expire_centisecs: Some(100),
            dirty_writeback_centisecs: Some(0),
            cgroups: [("bulk".to_owned(), "tasks=writer:wbps=2097152".to_owned())].into(),
            without: ["plugging".to_owned()].into(),
        }),
        beside: vec![
            BackgroundSpec {
                again: true,
                workload: WorkloadSpec::Script {
                    name: "streams".into(),
                    params: map(&[("streams", "2")]),
                },
            },
            BackgroundSpec::once(WorkloadSpec::Fio {
                file: "b.fio".into(),
                text: "[j]\nrw=write\n".into(),
                includes: BTreeMap::new(),
                variables: BTreeMap::new(),
            }),
        ],
        limit_s: Some(30),
        label: Some("mine".into()),
        repeat: 3,
        ..RunSpec::new(device, scheduler, workload)
    }
}

fn workloads() -> [WorkloadSpec; 3] {
    [
        WorkloadSpec::Script {
            name: "fs-mark".into(),
            params: map(&[("files", "20")]),
        },
        WorkloadSpec::Fio {
            file: "a.fio".into(),
            text: "[j]\nrw=read\n".into(),
            includes: map(&[("b.fio", "")]),
            variables: map(&[("SIZE", "1m")]),
        },
        WorkloadSpec::Trace {
            file: "t.csv".into(),
            sha256: "00".into(),
            format: Some("csv".into()),
            mode: "timed".into(),
            fit: Fit::Wrap,
            limit: Some(9),
            stream: Stream::Issue,
            volume: Some("8,16".into()),
            from_ns: 5,
            until_ns: Some(7),
            pids: [1, 2].into(),
            columns: Some("t_s=1,op=2,sector=3,n=4".into()),
            response_unit: Some("us".into()),
            allow_truncated: true,
        },
    ]
}

#[test]
fn specification_survives_a_round_trip_in_json_and_toml() {
    for w in workloads() {
        let spec = full(w);
        assert_eq!(RunSpec::from_json(&spec.canonical()), Ok(spec.clone()));
        let toml = spec.to_toml().expect("all of it has a place in TOML");
        assert_eq!(RunSpec::from_toml(&toml), Ok(spec.clone()), "{toml}");
        let straight: RunSpec = serde_json::from_str(&spec.canonical()).expect("serde's own way");
        assert_eq!(straight, spec);
    }
}

/// The table of known fields contains exactly the fields of the types.
#[test]
fn table_of_fields_equals_the_fields_of_the_types() {
    for w in workloads() {
        let value: Value = serde_json::from_str(&full(w).canonical()).expect("JSON");
        for (path, known) in fields() {
            let part = match path {
                "" => &value,
                "beside" => &value["beside"][0],
                "script" | "fio" | "trace" => match &value["workload"] {
                    w if w["kind"] == path => w,
                    _ => continue,
                },
                path => &value[path],
            };
            let mut names: Vec<&str> = known.to_vec();
            names.sort_unstable();
            let mut there: Vec<&String> = part.as_object().expect("a table").keys().collect();
            there.sort();
            assert_eq!(there, names, "{path}");
        }
    }
}

#[test]
fn canonical_json_is_sorted_and_has_no_spaces() {
    let [script, ..] = workloads();
    let device = DeviceSpec {
        spec: "hdd:x".into(),
        files: BTreeMap::new(),
    };
    let scheduler = SchedulerSpec {
        name: "noop".into(),
        ..SchedulerSpec::default()
    };
    let spec = RunSpec::new(device, scheduler, script);
    assert_eq!(
        spec.canonical(),
        concat!(
            r#"{"device":{"spec":"hdd:x"},"machine":{"aged_run_blocks":0},"#,
            r#""queue":{"hz":250,"nomerges":0},"repeat":0,"scheduler":{"name":"noop"},"#,
            r#""seed":1,"substrate":"sim","version":1,"#,
            r#""workload":{"kind":"script","name":"fs-mark","params":{"files":"20"}}}"#
        )
    );
    // Computed from these bytes with sha256sum.
    let own = content_hash(spec.canonical().as_bytes()).expect("bytes in memory");
    assert_eq!(spec.hash(), own);
    assert_eq!(
        content_hash(&b"abc"[..]).expect("bytes in memory"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "FIPS 180-2, appendix B.1"
    );
}

#[test]
fn specification_hash_ignores_label_and_file_names_only() {
    for w in workloads() {
        let one = full(w);
        let mut other = one.clone();
        other.label = None;
        if let WorkloadSpec::Fio { file, .. } | WorkloadSpec::Trace { file, .. } =
            &mut other.workload
        {
            *file = "elsewhere".into();
        }
        assert_eq!(one.hash(), other.hash());
        let changes: [fn(&mut RunSpec); 6] = [
            |s| s.seed += 1,
            |s| s.repeat += 1,
            |s| s.queue.nomerges = 0,
            |s| s.limit_s = None,
            |s| s.device.files.clear(),
            |s| s.machine = None,
        ];
        for change in changes {
            let mut other = one.clone();
            change(&mut other);
            assert_ne!(one.hash(), other.hash());
        }
    }
}

#[test]
fn all_faults_are_reported_together_with_suggestions() {
    let bad = json!({
        "device": { "spec": "hdd:x", "path": "y" },
        "schedular": { "name": "noop" },
        "scheduler": { "name": "noop", "tunabels": {} },
        "queue": { "hz": "fast" },
        "machine": { "core": 2 },
        "workload": { "kind": "script", "nam": "x", "name": "fs-mark" },
        "seed": -1,
    });
    let said = RunSpec::from_value(bad).expect_err("faults").to_string();
    for words in [
        "schedular: there is no such field; did you mean `scheduler`?",
        "device.path: there is no such field; there are spec, files",
        "scheduler.tunabels: there is no such field; did you mean `tunables`?",
        "queue: invalid type: string \"fast\", expected u32",
        "machine.core: there is no such field; did you mean `cores`?",
        "workload.nam: there is no such field; did you mean `name`?",
        "seed: invalid value: integer `-1`, expected u64",
    ] {
        assert!(said.lines().any(|l| l == words), "{words}\n--\n{said}");
    }
    let missing = RunSpec::from_json("{}").expect_err("nothing there");
    assert_eq!(missing.0.len(), 3, "{missing}");
    let newer = RunSpec::from_json(r#"{"version": 9, "planet": 1}"#).expect_err("newer");
    assert_eq!(
        newer.to_string(),
        "version: this Seekwell reads version 1, not 9"
    );
    let said = RunSpec::from_toml("device = \n")
        .expect_err("no TOML")
        .to_string();
    assert!(said.contains("line 1"), "{said}");
}

#[test]
fn toml_numbers_and_booleans_are_accepted_for_text_values() {
    let text = "
        device.spec = 'hdd:x'
        scheduler = { name = 'deadline', tunables = { fifo_batch = 1 } }
        workload = { kind = 'script', name = 'fs-mark', params = { files = 20, sync = true } }
    ";
    let spec = RunSpec::from_toml(text).expect("good");
    assert_eq!(spec.scheduler.tunables["fifo_batch"], "1");
    let WorkloadSpec::Script { params, .. } = &spec.workload else {
        panic!("a script");
    };
    assert_eq!((&*params["files"], &*params["sync"]), ("20", "true"));
    assert_eq!(spec.scheduler_label(), "deadline:fifo_batch=1");
}

proptest! {
    /// Any text gives a value or faults and never a panic. A value that was read is written
    /// unchanged.
    #[test]
    fn any_text_is_parsed_or_rejected_without_panic(text in "[\\{\\}\"a-z:,0-9 \\[\\]]{0,80}") {
        if let Ok(spec) = RunSpec::from_json(&text) {
            prop_assert_eq!(RunSpec::from_json(&spec.canonical()), Ok(spec));
        }
        let _ = RunSpec::from_toml(&text);
    }

    /// Any names and numbers are unchanged after writing and reading, in JSON and in TOML.
    #[test]
    fn any_values_survive_a_round_trip(
        name in "\\PC{0,12}",
        value in "\\PC{0,12}",
        seed in 0..=i64::MAX as u64,
        repeat: u32,
        nr in proptest::option::of(any::<u32>()),
        memory in proptest::option::of(0..=i64::MAX as u64),
    ) {
        let [script, ..] = workloads();
        let mut spec = full(script);
        (spec.seed, spec.repeat, spec.queue.nr_requests) = (seed, repeat, nr);
        spec.scheduler.tunables.insert(name, value);
        spec.machine.get_or_insert_default().memory_bytes = memory;
        prop_assert_eq!(RunSpec::from_json(&spec.canonical()), Ok(spec.clone()));
        let toml = spec.to_toml().expect("numbers of TOML");
        prop_assert_eq!(RunSpec::from_toml(&toml), Ok(spec));
    }
}
