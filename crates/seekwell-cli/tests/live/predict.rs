//! `seekwell predict` on a loop device with ext4: the prediction, its verification, and the stored
//! results.

use crate::host::{Mount, document};
use std::fs;

/// The verification measures the predicted pairs, restores the disk, and adds one line for each
/// prediction against the active scheduler. The stored results give the same pairs again.
#[test]
fn prediction_is_verified_scored_and_recorded() {
    let Some(m) = Mount::new("a verified prediction") else {
        return;
    };
    let dir = m.at().display().to_string();
    let results = m.rig.dir.join("predicted").display().to_string();
    let work = [
        "predict",
        &dir,
        "-w",
        "fs-mark:files=20",
        "-s",
        "none,mq-deadline,bfq",
        "-d",
        "constant:service_us=100",
    ];
    let r = m.rig.run(&[&work[..], &["--json"]].concat());
    assert_eq!(r.code, Some(0), "{}", r.err);
    let doc = document(&r);
    let all = doc["predictions"].as_array().expect("a list");
    let against = all.iter().filter(|p| p["against_active"] == true).count();
    assert_eq!((all.len(), against), (3, 2), "{doc}");
    for p in all {
        let odds = p["odds"]["probability"].as_f64().expect("a number");
        assert!((0.0..=0.95).contains(&odds), "{p}");
    }
    let settings = doc["settings"].as_array().expect("a list");
    let kb = settings.iter().find(|s| s["name"] == "max_sectors_kb");
    assert_eq!(kb.expect("a row")["state"], "carried", "{doc}");
    let more = [
        "--verify",
        "--confirm",
        &m.rig.name,
        "--repeats",
        "3",
        "--results",
        &results,
    ];
    let r = m.rig.run(&[&work[..], &more].concat());
    assert_eq!(r.code, Some(0), "{}", r.err);
    for says in ["Settings of both sides", "SCORE", "STATED"] {
        assert!(r.out.contains(says), "{says}: {}", r.out);
    }
    m.is_as_before();
    let record = fs::read_to_string(m.rig.dir.join("state/predictions.jsonl")).expect("a record");
    assert_eq!(record.lines().count(), 2, "{record}");
    let of = [
        "predict",
        "--of",
        &results,
        "-d",
        "constant:service_us=100",
        "--json",
    ];
    let r = m.rig.run(&of);
    assert_eq!(r.code, Some(0), "{}", r.err);
    let pairs = &document(&r)["simulation"]["pairs"];
    assert_eq!(pairs.as_array().map(Vec::len), Some(3), "{pairs}");
    let after = fs::read_to_string(m.rig.dir.join("state/predictions.jsonl")).expect("a record");
    assert_eq!(after, record, "stored results add nothing");
}
