//! Compares the details of a cell that come from a folder with those that come from the records.

use super::{add, experiment, keys, record, results, run};
use seekwell_lab::detail::{Gather, of_folder};
use seekwell_lab::results::{Folder, Outcome, read};

#[test]
fn details_from_a_folder_equal_those_from_records() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("r");
    let (e, all) = (experiment(2), keys(2, 6));
    let mut folder = Folder::create(&at, &e).expect("made");
    all.iter().for_each(|k| add(&mut folder, *k));
    folder.finish(&results(&e, &all)).expect("finished");
    let read = read(&at).expect("read");
    let mut gather = Gather::default();
    for k in &all {
        let run = run(*k);
        if !matches!(run.outcome, Outcome::Failed(_)) {
            let mut r = record(*k);
            r.duration_ns = run.duration_ns;
            gather.record(*k, &r);
        }
    }
    let from_folder = of_folder(&at, &read).expect("details");
    assert_eq!(from_folder, gather.done(&read));
    let side = &from_folder[1].sides[1];
    assert_eq!(from_folder[1].operation, "write, a file");
    assert_eq!(
        side.latency.iter().map(|b| b.1).sum::<u64>(),
        200 * u64::from(side.runs)
    );
    assert!(
        side.seconds.len() >= 3 && side.facts.is_none(),
        "no request went to a disk"
    );
}
