//! Background programs: their effect on the measured program, their part of the record, and that an
//! idle one changes nothing.

use seekwell_core::result::Record;
use seekwell_core::{Nanos, OpenFlags};
use seekwell_sim::compare::run_all;
use seekwell_sim::spec::workload::typed_beside;
use seekwell_sim::spec::{
    BackgroundSpec, Hooks, RunSpec, WorkloadSpec, checked, machine, run, words,
};
use seekwell_sim::world::SimMachine;
use seekwell_workload::{
    Context, Machine, Mark, Needs, Outcome, Params, Script, Workload, register,
};
use std::sync::Once;

fn spec(workload: &str, device: &str, scheduler: &str, beside: &[&str]) -> RunSpec {
    let mut spec = words::run(workload, device, scheduler).expect("good words");
    let neighbour = |t: &&str| typed_beside(t).expect("good words");
    spec.beside = beside.iter().map(neighbour).collect();
    // With little memory a writer soon waits for the disk.
    spec.machine = machine::typed("memory=1G").map(|t| t.spec).ok();
    spec
}

fn ran(spec: &RunSpec) -> Record {
    run(spec, Hooks::default()).expect("it runs")
}

fn metric(r: &Record) -> f64 {
    r.metric.as_ref().map_or(0.0, |m| m.value)
}

fn metric_named(r: &Record, name: &str) -> f64 {
    let m = r.more_metrics.iter().find(|m| m.name == name);
    m.unwrap_or_else(|| panic!("{name} in {:?}", r.more_metrics))
        .value
}

const DISK: &str = "hdd:hitachi-7k200";
const READER: &str = "random-read:size=256m,seconds=10s";
const FLOOD: &str = "loop:streams:kind=write,streams=1,size=1g,seconds=60s";

/// The demo `cfq-async` shows this with requests; this test uses a whole machine. CFQ holds back
/// asynchronous writes while a program reads. Under noop and deadline such writes fill the drive's
/// queue, where even an earlier read has to wait.
#[test]
fn cfq_protects_a_reader_from_background_writes() {
    let names = ["noop", "deadline", "cfq"];
    let alone = run_all(names.len(), 2, |i| ran(&spec(READER, DISK, names[i], &[])));
    let beside = run_all(names.len(), 2, |i| {
        ran(&spec(READER, DISK, names[i], &[FLOOD]))
    });
    let rate = |all: &[Record]| all.iter().map(metric).collect::<Vec<_>>();
    let (alone, with) = (rate(&alone), rate(&beside));
    let flood = beside
        .iter()
        .map(|r| metric_named(r, "beside/streams writes"));
    let flood: Vec<f64> = flood.collect();
    println!("{names:?}, reads/s: alone {alone:.2?}, beside a flood {with:.2?}");
    println!("the flood's MB/s: {flood:.2?}");
    // Without a background program the scheduler does not matter.
    let same = |v: &f64| (v / alone[0] - 1.0).abs() < 0.02;
    assert!(alone.iter().all(same), "{alone:?}");
    assert!(
        with.iter().zip(&alone).all(|(w, a)| *w < a / 2.0),
        "{with:?} {alone:?}"
    );
    assert!(with[2] > 1.3 * with[0].max(with[1]), "{with:?}");
    assert!(flood[2] < flood[0].min(flood[1]), "{flood:?}");
}

#[test]
fn neighbour_is_recorded_under_its_own_name() {
    let r = ran(&spec(
        "fs-mark:files=30,size=16KiB",
        DISK,
        "cfq",
        &[
            "loop:fs-mark:files=3,size=4KiB",
            "fs-mark:files=9000",
            "seeker:seconds=60s",
        ],
    ));
    assert!(
        r.early.is_none() && r.warnings.is_empty(),
        "{:?}",
        r.warnings
    );
    let names: Vec<&str> = r.beside.iter().map(|b| b.name.as_str()).collect();
    assert_eq!(
        names,
        ["beside/fs-mark", "beside/fs-mark-2", "beside/seeker"]
    );
    let [again, long, seeker] = &r.beside[..] else {
        panic!("three");
    };
    assert!(
        again.rounds > 2 && long.rounds == 1,
        "{} rounds",
        again.rounds
    );
    let round2 = |t: &&seekwell_core::result::TaskPart| t.path == "beside/fs-mark/round2";
    assert!(again.tasks.iter().any(|t| round2(&t)), "{:?}", again.tasks);
    assert!(
        again
            .tasks
            .iter()
            .all(|t| t.path.starts_with("beside/fs-mark"))
    );
    // The part of the measured program contains no operations of the background program.
    let kinds: Vec<&str> = r.operations.iter().map(|o| o.kind.as_str()).collect();
    let alone = ran(&spec("fs-mark:files=30,size=16KiB", DISK, "cfq", &[]));
    let own: Vec<&str> = alone.operations.iter().map(|o| o.kind.as_str()).collect();
    assert_eq!(kinds, own);
    assert!(r.tasks.iter().all(|t| t.path.starts_with("main")));
    let files = |r: &Record| r.operations.iter().map(|o| o.latency.count()).sum::<u64>();
    assert_eq!(files(&r), files(&alone), "the same work");
    // The share of each program, counted while the clock ran.
    let seeks: u64 = seeker.operations.iter().map(|o| o.latency.count()).sum();
    let span_s = r.span_ns() as f64 / 1e9;
    let told = r
        .more_metrics
        .iter()
        .find(|m| m.name.starts_with("beside/seeker "));
    let reads = metric_named(&r, "beside/seeker reads") * f64::from(1 << 20) * span_s;
    assert!(seeks > 0 && told.is_some(), "{:?}", r.more_metrics);
    assert!(
        reads >= 512.0 * seeks as f64,
        "{reads} bytes, {seeks} seeks"
    );
    let at = |name: &str| r.processes.iter().any(|p| p.name == name);
    assert!(
        at("main/worker0") && at("beside/seeker"),
        "{:?}",
        r.processes
    );
}

/// The clock of the background program stands still while the measured program lays out its
/// gigabyte. It gets its three seconds after the measured program's clock starts.
#[test]
fn neighbour_that_ends_early_is_reported() {
    let reader = "streams:streams=1,size=1GiB,seconds=5s";
    let short = "streams:kind=read,streams=2,size=16m,seconds=3s";
    let r = ran(&spec(reader, DISK, "deadline", &[short]));
    let (b, start) = (&r.beside[0], r.clock_start_ns.expect("a clock"));
    let ran_s = (b.ended_ns.expect("it ended") - start) as f64 / 1e9;
    assert!((3.0..3.5).contains(&ran_s), "{ran_s} s");
    assert!(!b.metrics.is_empty(), "it came to its end");
    assert!(
        r.warnings[0].starts_with("beside/streams ended after 3.")
            && r.warnings[0].contains("of 5.")
            && r.warnings[0].ends_with("(loop:streams restarts it)"),
        "{:?}",
        r.warnings
    );
    let again = ran(&spec(reader, DISK, "deadline", &[&format!("loop:{short}")]));
    assert!(again.warnings.is_empty(), "{:?}", again.warnings);
    assert_eq!(
        (again.beside[0].rounds, again.beside[0].ended_ns),
        (2, None)
    );
    assert!(again.beside[0].metrics.is_empty(), "of no single round");
}

#[test]
fn same_seed_gives_same_bytes() {
    let s = spec(
        "fs-mark:files=20,workers=3",
        DISK,
        "cfq",
        &[FLOOD, "loop:pgbench:scale=1,seconds=0,transactions=20"],
    );
    let json = |_| serde_json::to_string(&ran(&s)).expect("a record");
    let alone = json(0);
    assert_eq!(run_all(4, 2, json), vec![alone.clone(); 4]);
    let mut other = s.clone();
    other.seed = 2;
    assert_ne!(
        alone,
        serde_json::to_string(&ran(&other)).expect("a record")
    );
}

const fn nothing(name: &'static str) -> Workload {
    Workload {
        name,
        summary: "next to nothing",
        metric: "none",
        stresses: "nothing",
        source: "this test",
        params: &[],
        profiles: &[],
        needs: Needs::Device,
        space: |_| 0,
        check: |_| Ok(()),
    }
}

static IDLER: Workload = nothing("idler");
static QUITTER: Workload = nothing("quitter");

/// Fails one second after its clock has started.
async fn quitter<M: Machine>(m: &mut M, _: &Params, _: &str) -> Outcome {
    m.mark(Mark::ClockStart);
    m.sleep(Nanos::from_secs(1)).await.doing(|| "sleep")?;
    let fd = m.open("nowhere", OpenFlags::RDONLY).await;
    fd.doing(|| "open nowhere").map(|_| ())
}

/// Sleeps for a day.
async fn idler<M: Machine>(m: &mut M, _: &Params, _: &str) -> Outcome {
    m.open_device(OpenFlags::RDONLY).await.doing(|| "open")?;
    m.mark(Mark::ClockStart);
    m.sleep(Nanos::from_secs(86_400)).await.doing(|| "sleep")
}

fn registered_background(name: &str) -> BackgroundSpec {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let idler = Script::new(&IDLER).on::<SimMachine>(|m, p, d| Box::pin(idler(m, p, d)));
        let quitter = Script::new(&QUITTER).on::<SimMachine>(|m, p, d| Box::pin(quitter(m, p, d)));
        for script in [idler, quitter] {
            register(script).expect("a new name");
        }
    });
    typed_beside(name).expect("it is registered")
}

/// For any workload, scheduler, device and seed, an idle background program changes no figure.
#[test]
fn idle_neighbour_changes_no_figure() {
    let workloads = [
        "fs-mark:files=12",
        "streams:streams=1,size=32m,seconds=1s",
        "random-read:size=64m,seconds=1s",
        "postmark:files=40,transactions=60",
        "sqlite:transactions=8",
        "interactive:size=64m,bulk=64m,seconds=2s",
    ];
    let below = [
        (DISK, "cfq"),
        ("ssd:x25m-g2-160", "deadline"),
        ("ssd:sata-tlc-1t", "bfq"),
    ];
    let mut cases = Vec::new();
    for (i, w) in workloads.into_iter().enumerate() {
        for (k, (device, scheduler)) in below.into_iter().enumerate() {
            let mut s = spec(w, device, scheduler, &[]);
            s.seed = (1 + i * 3 + k) as u64;
            cases.push(s);
        }
    }
    let idle = registered_background("idler");
    let different = run_all(cases.len(), 2, |i| {
        let mut with = cases[i].clone();
        with.beside = vec![idle.clone()];
        let bare = |s: &RunSpec| {
            let mut r = ran(s);
            assert!(
                r.warnings.is_empty() && r.early.is_none(),
                "{:?}",
                r.warnings
            );
            r.beside.clear();
            (r.spec, r.spec_hash) = (None, String::new());
            // Task numbers differ by one, because the idle program's task comes first.
            r.processes.iter_mut().for_each(|p| p.task = 0);
            r.processes.sort_by(|a, b| a.name.cmp(&b.name));
            serde_json::to_string(&r).expect("a record")
        };
        (bare(&cases[i]) != bare(&with)).then(|| cases[i].canonical())
    });
    let different: Vec<String> = different.into_iter().flatten().collect();
    assert!(
        different.is_empty(),
        "{} of {}: {different:#?}",
        different.len(),
        cases.len()
    );
}

#[test]
fn failing_neighbour_ends_the_run_and_is_named() {
    let mut s = spec("streams:streams=1,size=16m,seconds=9s", DISK, "noop", &[]);
    s.beside = vec![
        registered_background("idler"),
        registered_background("quitter"),
        registered_background("idler"),
    ];
    let r = ran(&s);
    let (early, start) = (
        r.early.expect("ended early"),
        r.clock_start_ns.expect("it began"),
    );
    assert!(
        early.why.starts_with("beside/quitter: open nowhere: "),
        "{}",
        early.why
    );
    let s = (early.at_ns - start) as f64 / 1e9;
    assert!((1.0..1.2).contains(&s), "after {s} s");
}

#[test]
fn invalid_neighbours_are_rejected_with_their_position() {
    let mut s = spec("fs-mark:files=2", DISK, "noop", &[]);
    let alone = checked(&s).expect("good");
    assert!(
        !alone.canonical().contains("beside"),
        "hashes stay what they were"
    );
    let trace = WorkloadSpec::Trace {
        file: "t.csv".into(),
        sha256: "0".repeat(64),
        format: None,
        mode: "timed".into(),
        fit: Default::default(),
        limit: None,
        stream: Default::default(),
        volume: None,
        from_ns: 0,
        until_ns: None,
        pids: Default::default(),
        columns: None,
        response_unit: None,
        allow_truncated: false,
    };
    let raw = WorkloadSpec::Fio {
        file: "raw.fio".into(),
        text: "[j]\nfilename=/dev/sdx\nrw=write\nsize=1m\n".into(),
        includes: Default::default(),
        variables: Default::default(),
    };
    let wrong = WorkloadSpec::Script {
        name: "fs-mrak".into(),
        params: Default::default(),
    };
    s.beside = [trace.clone(), raw, wrong]
        .map(BackgroundSpec::once)
        .to_vec();
    let e = checked(&s).expect_err("three faults");
    let at: Vec<&str> = e.0.iter().map(|e| e.field.as_str()).collect();
    assert_eq!(
        at,
        [
            "beside[0].workload",
            "beside[1].workload",
            "beside[2].workload.name"
        ],
        "{e}"
    );
    assert!(e.0[0].what.contains("replay it alone"), "{e}");
    assert!(e.0[1].what.contains("writes to the raw device"), "{e}");
    assert!(e.0[2].what.contains("did you mean `fs-mark`?"), "{e}");
    s.workload = trace;
    (s.machine, s.beside) = (None, vec![registered_background("idler")]);
    let e = checked(&s).expect_err("a trace is measured").to_string();
    assert!(e.contains("it cannot have background programs"), "{e}");
    let fio = "[flood]\nrw=write\nsize=64m\nbs=64k\n";
    let job = WorkloadSpec::Fio {
        file: "flood.fio".into(),
        text: fio.into(),
        includes: Default::default(),
        variables: Default::default(),
    };
    let mut s = spec("seeker:seconds=1s", DISK, "deadline", &[]);
    s.beside = vec![BackgroundSpec {
        again: true,
        workload: job,
    }];
    let r = ran(&s);
    assert!(
        metric_named(&r, "beside/fio writes") > 1.0,
        "{:?}",
        r.more_metrics
    );
    assert_eq!(r.beside[0].workload, "fio");
}
