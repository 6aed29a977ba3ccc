use super::*;
use seekwell_core::{Era, Instant};
use seekwell_sched::registry;
use seekwell_workload::workloads;
use std::collections::BTreeMap;

fn quick() -> RunSpec {
    words::run("fs-mark:files=2,size=16KiB", "ssd:x25m-g2-160", "deadline").expect("good words")
}

#[test]
fn words_are_expanded_to_a_complete_specification() {
    let spec = words::run(
        "fs-mark:files=20",
        "hdd:hitachi-7k200",
        "cfq-3.4:slice_idle=0",
    )
    .expect("good words");
    let whole = checked(&spec).expect("good");
    let machine = whole.machine.clone().expect("stated");
    assert_eq!(machine.kernel.as_deref(), Some("3.4"));
    assert_eq!(
        (machine.cores, machine.memory_bytes),
        (Some(4), Some(4 << 30))
    );
    assert_eq!(
        (machine.fs.as_deref(), machine.barriers),
        (Some("ext4"), Some(true))
    );
    assert_eq!(machine.read_ahead_kb, Some(128));
    assert_eq!(whole.scheduler.version.as_deref(), Some("3.4"));
    let WorkloadSpec::Script { params, .. } = &whole.workload else {
        panic!("a script");
    };
    assert!(params.len() > 3 && params["files"] == "20", "{params:?}");
    assert_eq!(
        checked(&whole),
        Ok(whole.clone()),
        "once checked, always the same"
    );
    // The same run, given in another notation.
    let mut other = words::run(
        "fs-mark:files=20,workers=1",
        " hdd:hitachi-7k200",
        "cfq-3.4:slice_idle=+0",
    )
    .expect("good words");
    other.machine = machine::typed("memory=4G,cores=4").map(|t| t.spec).ok();
    let other = checked(&other).expect("good");
    assert_eq!(other.hash(), whole.hash());
    assert_ne!(other.label, whole.label);
}

#[test]
fn all_faults_are_reported_together() {
    let mut spec = quick();
    spec.queue.nomerges = 3;
    spec.queue.hz = 1;
    spec.device.spec = "hdd:hitachi-7k200,rmp=1".into();
    spec.scheduler
        .tunables
        .insert("fifo_bach".into(), "1".into());
    spec.scheduler
        .tunables
        .insert("read_expire".into(), "soon".into());
    spec.machine.get_or_insert_default().cores = Some(0);
    let WorkloadSpec::Script { params, .. } = &mut spec.workload else {
        panic!("a script");
    };
    params.insert("fils".into(), "3".into());
    params.insert("size".into(), "big".into());
    let said = checked(&spec).expect_err("faults").to_string();
    for words in [
        "queue.nomerges: nomerges 3 is outside 0..=2",
        "queue.hz: hz 1 is outside 24..=10000",
        "device: ",
        "scheduler.tunables.fifo_bach: deadline has no tunable \"fifo_bach\"",
        "did you mean `fifo_batch`?",
        "scheduler.tunables.read_expire: tunable `read_expire`: \"soon\" is not a whole number",
        "machine.cores: 0 is outside 1..=1024",
        "workload.params.fils: ",
        "did you mean `files`?",
        "workload.params.size: ",
    ] {
        assert!(said.contains(words), "{words}\n--\n{said}");
    }
    let schedulers = scheduler::list("cfg,dedline,all").expect_err("two faults");
    assert_eq!(schedulers.0.len(), 2, "{schedulers}");
}

#[test]
fn scheduler_lists_and_common_tunables_are_expanded() {
    let all = scheduler::list("all").expect("all");
    assert_eq!(all.len(), registry().len());
    let mut some = scheduler::list("deadline, mq-deadline:front_merges=0,noop").expect("good");
    scheduler::spread("fifo_batch=7", &mut some).expect("two have it");
    scheduler::spread("deadline.writes_starved=9", &mut some).expect("one is meant");
    let of = |i: usize| &some[i].spec.tunables;
    assert_eq!(
        (of(0)["fifo_batch"].as_str(), of(1)["fifo_batch"].as_str()),
        ("7", "7")
    );
    assert_eq!(of(0)["writes_starved"], "9");
    assert!(!of(1).contains_key("writes_starved") && of(2).is_empty());
    // If a tunable were set twice, it would be unclear which value is used. So the second setting
    // is rejected.
    for again in ["fifo_batch=8", "mq-deadline.front_merges=1"] {
        let e = scheduler::spread(again, &mut some).expect_err("given before");
        assert!(e.to_string().contains("is given twice"), "{e}");
    }
    let twice = scheduler::typed("bfq:slice_idle=1:slice_idle_us=9").expect("each is good");
    let said = scheduler::checked(&twice.spec)
        .err()
        .expect("not both")
        .to_string();
    assert!(said.contains("the same value in two units"), "{said}");
    for (text, words) in [
        ("cfq.quantum=1", "cfq is not among the schedulers to run"),
        ("fifo_bach=1", "did you mean `fifo_batch`?"),
        ("fifo_batch=x", "is not a whole number"),
        ("fifo_batch", "write NAME=VALUE"),
    ] {
        let said = scheduler::spread(text, &mut some)
            .expect_err(text)
            .to_string();
        assert!(said.contains(words), "{text}: {said}");
    }
}

/// Checks for every workload and profile that a specification with all parameters filled in means
/// the same.
#[test]
fn checked_specification_is_a_fixed_point() {
    for w in workloads() {
        let profiles = w.profiles.iter().map(|p| Some(p.name));
        for profile in profiles.chain([None]) {
            let params = profile.map(|p| ("profile".to_owned(), p.to_owned()));
            let spec = WorkloadSpec::Script {
                name: w.name.to_owned(),
                params: params.into_iter().collect(),
            };
            let whole = workload::checked(&spec).expect(w.name);
            assert_eq!(workload::checked(&whole), Ok(whole.clone()), "{}", w.name);
            let title = |s: &WorkloadSpec| plan(s).expect(w.name).expect("a script").title();
            assert_eq!(title(&whole), title(&spec));
        }
    }
}

/// Tunables are written in the order of their names. The order in which they are typed has no
/// effect.
#[test]
fn order_of_tunables_has_no_effect() {
    for info in registry() {
        for (version, _) in info.versions {
            let all = (info.tunables)(version);
            let set: Vec<(String, String)> = all
                .iter()
                .filter_map(|t| {
                    // A value that has two units may be set in only one of them.
                    let twin = t.name.strip_suffix("_us").unwrap_or_default();
                    if all.iter().any(|o| o.name == twin) {
                        return None;
                    }
                    let n: i64 = t.default.parse().ok()?;
                    let next = if n < t.max { n + 1 } else { n.checked_sub(1)? };
                    let text = next.clamp(t.min, t.max).to_string();
                    t.validate(&text).ok().map(|()| (t.name.to_owned(), text))
                })
                .collect();
            let shown = |tunables: Vec<(String, String)>| {
                let setup = crate::Setup {
                    scheduler: format!("{}-{version}", info.name),
                    tunables,
                    ..crate::Setup::default()
                };
                let mut queue = setup.build().expect(info.name);
                let (scheduler, cx) = queue.parts();
                all.iter()
                    .map(|t| (t.name, scheduler.show(cx, t.name)))
                    .collect::<Vec<_>>()
            };
            let mut back = set.clone();
            back.reverse();
            assert_eq!(shown(set), shown(back), "{}-{version}", info.name);
        }
    }
}

#[test]
fn record_contains_the_specification_of_its_run() {
    let mut spec = quick();
    let t = machine::typed("memory=512M,fs=ext3,cores=2").expect("good");
    spec.machine = Some(t.spec);
    (spec.queue.nr_requests, spec.queue.nomerges) = (Some(64), 2);
    let record = run(&spec, Hooks::default()).expect("it runs");
    let own = record.spec.clone().expect("embedded");
    let machine = own.machine.clone().expect("stated");
    assert_eq!(
        (machine.memory_bytes, machine.cores),
        (Some(512 << 20), Some(2))
    );
    assert_eq!(machine.fs.as_deref(), Some("ext3"));
    assert_eq!((own.queue.nr_requests, own.queue.nomerges), (Some(64), 2));
    assert_eq!(record.spec_hash, own.hash());
    assert_eq!(
        (record.scheduler.spec.as_str(), record.early.clone()),
        ("deadline", None)
    );
    // A run of the specification in the record gives the same bytes.
    let again = run(&own, Hooks::default()).expect("it runs again");
    let text = |r: &seekwell_core::result::Record| serde_json::to_string(r).expect("a record");
    assert_eq!(text(&record), text(&again));
}

#[test]
fn time_limit_ends_a_run_and_is_recorded() {
    let mut spec = words::run("fs-mark:files=1000", "hdd:hitachi-7k200", "noop").expect("good");
    spec.limit_s = Some(1);
    let record = run(&spec, Hooks::default()).expect("it runs");
    assert!(record.censored());
    let early = record.early.expect("it ended early");
    assert_eq!(early.why, "stopped at the time limit of 1 s");
    assert_eq!(early.at_ns, 1_000_000_000);
}

/// Checks setups in which a task starves under some scheduler. Every run must end, at its end or at
/// its limit.
#[test]
fn every_run_ends_within_its_limit_under_every_scheduler() {
    let setups = [
        (
            "random-read:tasks=8,size=32m,seconds=2s",
            "hdd:hitachi-7k200,depth=1",
        ),
        (
            "app-start:starts=2,libraries=10,small=20,bulk=16m,pause=100ms",
            "hdd:hitachi-7k200",
        ),
        (
            "app-start:starts=2,libraries=10,small=20,bulk=16m,pause=100ms",
            "ssd:sata-tlc-1t",
        ),
        (
            "fsync-latency:seconds=2s,writers=2,bulk=64m",
            "ssd:sata-tlc-1t",
        ),
    ];
    let schedulers = registry().iter().map(|s| s.name);
    let (mut whole, mut cut) = (0, 0);
    for scheduler in schedulers {
        for (workload, device) in setups {
            let mut spec = words::run(workload, device, scheduler).expect("good");
            spec.limit_s = Some(4);
            let record = run(&spec, Hooks::default());
            let record = record.unwrap_or_else(|e| panic!("{workload} {device} {scheduler}: {e}"));
            assert!(
                record.duration_ns <= 4_000_000_000,
                "{workload} {device} {scheduler}: {}",
                record.duration_ns
            );
            assert_eq!(record.early.is_some(), record.censored());
            match record.censored() {
                true => cut += 1,
                false => whole += 1,
            }
        }
    }
    assert!(whole > 0 && cut > 0, "{whole} {cut}");
}

#[test]
fn replay_ends_at_its_limit() {
    let dir = std::env::temp_dir().join(format!("seekwell-limit-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("slow.csv");
    let rows = (0..100u64).map(|i| format!("{},R,{},8,1\n", i * 100_000_000, i * 9000));
    let text = "t_ns,op,sector,sectors,pid\n".to_owned() + &rows.collect::<String>();
    std::fs::write(&file, text).expect("written");
    let workload = workload::trace(&file).expect("a trace");
    let mut spec = words::run("hdparm", "hdd:hitachi-7k200", "noop").expect("good");
    (spec.workload, spec.machine) = (workload, None);
    let whole = run(&spec, Hooks::default()).expect("it runs");
    assert_eq!((whole.read.ios, whole.early.as_ref()), (100, None));
    spec.limit_s = Some(3);
    let cut = run(&spec, Hooks::default()).expect("it runs");
    std::fs::remove_dir_all(&dir).expect("removed");
    assert!(cut.censored());
    assert_eq!(cut.duration_ns, 3_000_000_000);
    assert!((29..=31).contains(&cut.read.ios), "{}", cut.read.ios);
}

#[test]
fn device_file_is_stored_in_the_specification() {
    let dir = std::env::temp_dir().join(format!("seekwell-spec-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("mine.toml");
    let text = "kind = \"constant\"\nname = \"mine\"\nsummary = \"x\"\n[params]\n\
                depth = { value = 3, unit = \"commands\", source = \"estimate\" }\n";
    std::fs::write(&file, text).expect("written");
    let device = file.display().to_string();
    let spec = words::run(
        "fs-mark:files=1",
        &format!("{device},service_us=50"),
        "none",
    );
    let spec = checked(&spec.expect("good")).expect("good");
    assert_eq!(
        spec.device.files,
        BTreeMap::from([(device, text.to_owned())])
    );
    let record = run(&spec, Hooks::default()).expect("it runs");
    // The run is the same without the file.
    std::fs::remove_dir_all(&dir).expect("removed");
    let again = run(&spec, Hooks::default()).expect("without the file");
    assert_eq!(
        (record.device.depth, record.duration_ns),
        (again.device.depth, again.duration_ns)
    );
    assert_eq!(again.device.depth, 3);
}

#[test]
fn included_files_and_variables_of_a_fio_job_are_stored() {
    let dir = std::env::temp_dir().join(format!("seekwell-job-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("a.fio");
    std::fs::write(dir.join("b.fio"), "[global]\nsize=64k\n").expect("written");
    std::fs::write(&file, "include b.fio\n[j]\nrw=write\nbs=${HOME}k\n").expect("written");
    // The value of HOME is not a number. The error appears after its value was stored.
    assert!(workload::typed(&file.display().to_string(), &[]).is_err());
    std::fs::write(&file, "include b.fio\n[j]\nrw=write\nbs=4k\n").expect("written");
    let typed = workload::typed(&file.display().to_string(), &[]).expect("good");
    std::fs::remove_dir_all(&dir).expect("removed");
    let WorkloadSpec::Fio { includes, .. } = &typed else {
        panic!("a job file");
    };
    assert_eq!(includes["b.fio"], "[global]\nsize=64k\n");
    let mut spec = quick();
    spec.workload = typed;
    let record = run(&spec, Hooks::default()).expect("without the files");
    assert_eq!(record.workload, "fio");
}

#[test]
fn parameters_beside_a_fio_job_and_fio_commands_become_its_text() {
    let dir = std::env::temp_dir().join(format!("seekwell-options-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("a.fio").display().to_string();
    std::fs::write(dir.join("b.fio"), "bs=4k\n").expect("written");
    std::fs::write(&file, "[j]\nrw=write\ninclude b.fio\n").expect("written");
    let with = |params: &[&str]| {
        let params: Vec<String> = params.iter().map(|p| (*p).to_owned()).collect();
        workload::typed(&file, &params)
    };
    let missing = with(&[]).expect_err("no size").to_string();
    assert!(missing.contains("size is missing"), "{missing}");
    let typed = with(&["size=64k,bs=8k", "fsync=1"]).expect("good");
    let WorkloadSpec::Fio { text, includes, .. } = &typed else {
        panic!("a job file");
    };
    assert_eq!(text, "[global]\nsize=64k\nbs=8k\nfsync=1\n[j]\nrw=write\n");
    assert!(includes.is_empty(), "the text holds the included file");
    let bad = with(&["frob=1", "size=1m"])
        .expect_err("unknown")
        .to_string();
    assert!(bad.contains("\"frob\""), "{bad}");
    let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    let command = workload::fio_command(&words(&format!("fio --size=64k {file}")));
    let mut spec = quick();
    spec.workload = command.expect("a command with a job file");
    std::fs::remove_dir_all(&dir).expect("removed");
    assert_eq!(run(&spec, Hooks::default()).expect("runs").workload, "fio");
    let command = workload::fio_command(&words("fio --name=a --rw=read --size=64k"));
    spec.workload = command.expect("a command");
    assert_eq!(run(&spec, Hooks::default()).expect("runs").workload, "fio");
    let gone = workload::fio_command(&words("fio gone.fio")).expect_err("no file");
    assert!(gone.to_string().contains("gone.fio"), "{gone}");
}

#[test]
fn trace_is_identified_by_its_content() {
    let file = std::env::temp_dir().join(format!("seekwell-trace-{}.csv", std::process::id()));
    let rows: String = (0..50)
        .map(|i| format!("{},1,R,{},8\n", i * 900, i * 64))
        .collect();
    std::fs::write(&file, format!("t_us,pid,op,sector,n\n{rows}")).expect("written");
    let mut spec = quick();
    spec.workload = workload::trace(&file).expect("read");
    spec.machine = None;
    let record = run(&spec, Hooks::default()).expect("it replays");
    assert_eq!((record.read.ios, record.workload.as_str()), (50, "replay"));
    assert!(record.spec.as_ref().is_some_and(|s| s.machine.is_none()));
    let seen = std::rc::Rc::new(std::cell::Cell::new(0u64));
    let count = std::rc::Rc::clone(&seen);
    let hooks = Hooks {
        events: Some(Box::new(move |e: &seekwell_core::Event| {
            count.set(count.get() + u64::from(e.action.letter() == 'D'));
        })),
        ..Hooks::default()
    };
    let watched = run(&spec, hooks).expect("it replays");
    assert_eq!(seen.get(), watched.requests, "each request is issued once");
    assert_eq!(watched.duration_ns, record.duration_ns);
    spec.machine = Some(MachineSpec::default());
    let said = checked(&spec).expect_err("no machine").to_string();
    assert!(said.contains("machine: a trace"), "{said}");
    spec.machine = None;
    std::fs::write(&file, "t_us,pid,op,sector,n\n0,1,R,0,8\n").expect("written");
    let said = run(&spec, Hooks::default())
        .expect_err("another trace")
        .to_string();
    std::fs::remove_file(&file).expect("removed");
    assert!(said.contains("is another trace"), "{said}");
}

#[test]
fn events_are_delivered_in_order() {
    use std::cell::RefCell;
    use std::rc::Rc;
    let seen = Rc::new(RefCell::new(Vec::new()));
    let into = Rc::clone(&seen);
    let hooks = Hooks {
        events: Some(Box::new(move |e: &seekwell_core::Event| {
            into.borrow_mut().push((e.at, e.action.letter()));
        })),
        ..Hooks::default()
    };
    let watched = run(&quick(), hooks).expect("it runs");
    let seen = seen.borrow();
    assert!(seen.is_sorted_by_key(|e| e.0) && seen[0].0 >= Instant::START);
    let letters = |l: char| seen.iter().filter(|e| e.1 == l).count() as u64;
    // The record counts only while the workload's clock runs. The listener receives all events.
    assert!(letters('D') >= watched.requests && watched.requests > 0);
    let alone = run(&quick(), Hooks::default()).expect("it runs");
    assert_eq!(
        alone.duration_ns, watched.duration_ns,
        "nobody is disturbed"
    );
}

#[test]
fn every_kernel_is_accepted_by_name() {
    for era in Era::ALL {
        let m = machine::typed(&format!("kernel={}", era.name())).expect("known");
        let mut spec = quick();
        spec.machine = Some(m.spec);
        let whole = checked(&spec).expect("good");
        assert_eq!(
            whole.machine.and_then(|m| m.kernel).as_deref(),
            Some(era.name())
        );
    }
}

/// The test for real runs (`seekwell-cli`, tests/live/throttle.rs) uses the same table.
#[test]
fn wbt_default_of_a_queue_follows_its_scheduler() {
    use crate::Setup;
    use seekwell_sched::{Layer, registry, wbt};
    let read = |device: &str, scheduler: &str, written: Option<u64>| {
        let written = written.map(|v| ("wbt_lat_usec".to_owned(), v.to_string()));
        let setup = Setup {
            device: device.to_owned(),
            scheduler: scheduler.to_owned(),
            tunables: written.into_iter().collect(),
            ..Setup::default()
        };
        setup.build().expect("it is built").wbt_lat_usec()
    };
    for (device, rotating) in [("hdd:hitachi-7k200", true), ("ssd:x25m-g2-160", false)] {
        for s in registry() {
            let usual = read(device, s.name, None);
            let (is, other) = match s.layer {
                Layer::Legacy => {
                    assert_eq!(usual, None, "{}", s.name);
                    continue;
                }
                Layer::Mq => (
                    wbt::default_usec(s.name, rotating),
                    wbt::opposite_usec(s.name, rotating),
                ),
            };
            assert_eq!(usual, Some(is), "{} on {device}", s.name);
            assert_eq!(read(device, s.name, Some(other)), Some(other), "{}", s.name);
        }
        // Writing the value that is already stored is not a change, and the run reports this.
        let target = wbt::target_usec(rotating);
        assert_eq!(read(device, "bfq", Some(target)), Some(0));
    }
}
