//! Completes folders after any number of interruptions.

use super::{add, bytes, experiment, keys, results, run};
use proptest::prelude::*;
use seekwell_lab::results::{Environment, Folder, JOURNAL, RunKey, State, list, look, read};
use std::path::{Path, PathBuf};

fn finished(at: &Path, order: &[RunKey], cells: usize, blocks: u32) {
    let e = experiment(cells);
    let mut folder = Folder::create(at, &e).expect("made");
    order.iter().for_each(|k| add(&mut folder, *k));
    folder
        .finish(&results(&e, &keys(cells, blocks)))
        .expect("finished");
}

#[test]
fn stored_runs_are_read_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("deep/er/r");
    let all = keys(3, 6);
    let (e, given) = (experiment(3), results(&experiment(3), &all));
    let mut folder = Folder::create(&at, &e).expect("made");
    for k in &all[..10] {
        add(&mut folder, *k);
    }
    assert_eq!(folder.completed().expect("read"), given.runs[..10]);
    assert_eq!(
        read(&at).expect("read while it goes on").runs,
        given.runs[..10]
    );
    assert_eq!(look(&at).state, State::Running);
    all[10..].iter().for_each(|k| add(&mut folder, *k));
    folder.finish(&given).expect("finished");
    assert_eq!(folder.read().expect("read"), given);
    assert_eq!(read(&at).expect("read"), given);
    assert!(!at.join(JOURNAL).exists(), "the journal goes");
    let listed = list(&[dir.path().join("deep/er")]).expect("listed");
    assert_eq!(listed.len(), 1);
    let one = &listed[0];
    assert_eq!((one.cells, one.runs, &one.state), (3, 36, &State::Complete));
    assert_eq!(
        std::fs::read_to_string(at.join("experiment.toml")).expect("text"),
        e.text
    );
    let text = std::fs::read_to_string(at.join("environment.json")).expect("text");
    let environment: Environment = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (environment.sessions.len(), environment.sessions[0].runs),
        (1, 36)
    );
    // A complete folder must not change.
    let mut folder = Folder::open(&at).expect("opened");
    let before = bytes(&at);
    let e = folder
        .finish(&given)
        .expect_err("never changed")
        .to_string();
    assert!(
        e.contains("is complete, and results are never changed"),
        "{e}"
    );
    let e = Folder::create(&at, &experiment(3))
        .map(|_| ())
        .expect_err("never overwritten");
    assert!(e.to_string().contains("never overwritten"), "{e}");
    assert_eq!(bytes(&at), before);
}

#[test]
fn imports_are_stored_without_records() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("r");
    let given = results(&experiment(2), &keys(2, 3));
    Folder::store(&at, &given).expect("stored");
    assert_eq!(read(&at).expect("read"), given);
}

#[test]
fn folder_is_locked_against_a_second_writer() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("r");
    let mut first = Folder::create(&at, &experiment(1)).expect("made");
    add(&mut first, keys(1, 1)[0]);
    let e = Folder::open(&at)
        .map(|_| ())
        .expect_err("in use")
        .to_string();
    assert!(
        e.contains("another seekwell process is writing to it"),
        "{e}"
    );
    drop(first);
    let again = Folder::resume(&at, &experiment(1)).expect("free now");
    assert_eq!(again.completed().expect("read"), [run(keys(1, 1)[0])]);
}

#[test]
fn only_the_same_experiment_can_resume_a_folder() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("r");
    drop(Folder::create(&at, &experiment(2)).expect("made"));
    let words = |change: &dyn Fn(&mut seekwell_lab::experiment::Experiment)| {
        let mut e = experiment(2);
        change(&mut e);
        let refused = Folder::resume(&at, &e).map(|_| ()).expect_err("another");
        refused.to_string()
    };
    let name = words(&|e| e.about.name = "b".to_owned());
    assert!(
        name.contains("it is the experiment \"tried <2>\""),
        "{name}"
    );
    let cell = words(&|e| e.cells[1].cell.name = "b".to_owned());
    assert!(cell.contains("it has the cell \"cell 1\""), "{cell}");
    let label = words(&|e| e.treatments[1].label = "b".to_owned());
    assert!(label.contains("the scheduler \"cfq:x=1\""), "{label}");
    let seed = words(&|e| e.about.method.seed = 9);
    assert!(seed.contains("it has the seed 1"), "{seed}");
    let spec = words(&|e| e.cells[1].specs[0].queue.hz = 1000);
    assert!(
        spec.contains("the specifications of cell \"cell 1\" differ"),
        "{spec}"
    );
    // The parts of an experiment that do not affect its runs may change.
    let mut e = experiment(2);
    e.cells[0].specs[0].label = Some("x".to_owned());
    e.text = "# with another comment\n".to_owned();
    Folder::resume(&at, &e).expect("the same");
}

#[test]
fn stored_rows_equal_the_records() {
    use seekwell_lab::results::{Layer, SeriesRow, operations, records, series};
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("r");
    finished(&at, &keys(2, 5), 2, 5);
    let order = keys(2, 5);
    let mut seen = 0;
    operations(&at, |run, o| {
        let r = super::record(order[run]);
        let (latency, bytes) = match (o.layer, o.kind.as_str()) {
            (Layer::Block, "read") => (&r.read.latency, r.read.bytes),
            (Layer::Block, _) => (&r.write.latency, r.write.bytes),
            _ => (&r.operations[0].latency, r.operations[0].bytes),
        };
        assert_eq!(
            (o.count, o.bytes, o.max_ns),
            (latency.count(), bytes, latency.max_ns())
        );
        assert_eq!(o.mean_ns.to_bits(), latency.mean_ns().to_bits());
        assert_eq!(o.quantiles_ns[4], latency.percentile_ns(99.0));
        seen += 1;
    })
    .expect("read");
    assert_eq!(seen, 18 * 3);
    let mut seconds = vec![Vec::new(); 20];
    series(&at, |run, layer, kind, s| {
        if layer == Layer::Workload {
            assert_eq!(kind, "write, a file");
            seconds[run].push(s);
        }
    })
    .expect("read");
    for (run, told) in seconds.iter().enumerate() {
        let all = super::record(order[run]).operations[0].seconds.clone();
        let some = all.iter().enumerate().filter(|s| s.1.ops > 0);
        let row = |(at, s): (usize, &seekwell_core::result::OpSecond)| {
            let (sum, max) = (s.latency_sum_ns, s.latency_max_ns);
            SeriesRow(at as u64, s.ops, s.bytes, sum, max, s.latency_square_us2)
        };
        let failed = !matches!(
            super::run(order[run]).outcome,
            seekwell_lab::results::Outcome::Failed(_)
        );
        let all: Vec<_> = some.map(row).filter(|_| failed).collect();
        assert_eq!(*told, all);
    }
    let mut specs = 0;
    records(&at, |_, spec, record| {
        let spec: seekwell::RunSpec = serde_json::from_str(spec.expect("there")).expect("a run");
        assert_eq!(spec, super::spec("noop"));
        specs += 1;
        if let Some(record) = record {
            let record: serde_json::Value = serde_json::from_str(record).expect("JSON");
            assert_eq!(record["marks"][0]["name"], super::AWKWARD);
        }
    })
    .expect("read");
    assert_eq!(specs, 20);
}

/// Truncates the journal to this fraction of its content after the first line.
fn kill(at: &Path, share: f64) {
    let path = at.join(JOURNAL);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("a journal");
    let length = file.metadata().expect("known").len();
    file.set_len((length as f64 * share) as u64).expect("cut");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]
    /// Any order of runs, and any number of interruptions at any byte of the journal, give the same
    /// files.
    #[test]
    fn run_order_and_kills_do_not_change_the_files(
        order in Just(keys(2, 5)).prop_shuffle(),
        kills in proptest::collection::vec((0.0f64..1.0, 1usize..8), 1..5),
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| -> PathBuf { dir.path().join(name) };
        finished(&at("straight"), &keys(2, 5), 2, 5);
        let e = experiment(2);
        drop(Folder::create(&at("killed"), &e).expect("made"));
        for (share, runs) in kills {
            let mut folder = Folder::resume(&at("killed"), &e).expect("resumed");
            let left: Vec<_> = order.iter().filter(|k| !folder.has(**k)).take(runs).collect();
            left.into_iter().for_each(|k| add(&mut folder, *k));
            drop(folder);
            kill(&at("killed"), share);
        }
        let mut folder = Folder::resume(&at("killed"), &e).expect("resumed");
        let left: Vec<_> = order.iter().filter(|k| !folder.has(**k)).collect();
        left.into_iter().for_each(|k| add(&mut folder, *k));
        folder.finish(&results(&e, &keys(2, 5))).expect("finished");
        prop_assert_eq!(bytes(&at("straight")), bytes(&at("killed")));
    }
}
