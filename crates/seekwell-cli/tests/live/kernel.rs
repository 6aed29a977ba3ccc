//! `seekwell verify-kernel` compares the models with the running kernel. It must detect mistakes
//! that are added to the models on purpose.

use crate::disk::{attached, missing_requirement, serialize_tests};
use serde_json::Value;
use std::process::{Command, Stdio};

#[test]
fn models_match_the_running_kernels_order_and_planted_mistakes_are_detected() {
    let _turn = serialize_tests();
    if let Some(why) = missing_requirement(&["losetup"]) {
        println!("skipped: verify-kernel: {why}");
        return;
    }
    let o = Command::new("env")
        .args([
            "--default-signal=INT,TERM,HUP",
            env!("CARGO_BIN_EXE_seekwell"),
            "-q",
            "verify-kernel",
            "--rounds",
            "3",
            "--json",
        ])
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    let doc: Value = serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {err}"));
    let kernel = doc["kernel"].as_str().expect("told").to_owned();
    for r in doc["reports"].as_array().expect("a list") {
        println!("{r}");
        let name = r["scheduler"].as_str().expect("a name");
        let classes = r["classes"].as_object().expect("classes").values();
        let sum = |what: &str| -> u64 { classes.clone().filter_map(|c| c[what].as_u64()).sum() };
        let (rounds, identical) = (sum("rounds"), sum("identical"));
        if rounds < 4 {
            println!("skipped: {name}: the machine was too busy for its batches to be in time");
            continue;
        }
        // The null model must agree in at most half of the rounds.
        assert!(sum("fifo") * 2 <= rounds, "{name}: {r}");
        if !kernel.starts_with("6.18.") {
            println!("skipped: {name}: Linux {kernel} may have another: {identical} of {rounds}");
            continue;
        }
        // On a busy machine, those decisions of bfq that depend on time differ.
        if name == "bfq" {
            assert!(identical * 2 >= rounds, "{name}: {identical} of {rounds}");
        } else {
            assert_eq!(r["unexplained"], 0, "{name}: {r}");
            assert!(
                identical * 10 >= rounds * 9,
                "{name}: {identical} of {rounds}"
            );
        }
        // Each mistake shows in only some of the batches, so the result is reliable only if all
        // batches were compared.
        if r["left_out"] != 0 {
            println!("skipped: {name}: planted mistakes: some batches were not in time");
            continue;
        }
        for p in r["planted"].as_array().expect("a list") {
            let of = |what: &str| p[what].as_u64().expect("a number");
            assert!(of("identical") < of("rounds"), "not caught: {p}");
        }
    }
    assert!(!attached(&std::env::temp_dir().join("seekwell-referee")));
}

#[test]
fn scheduler_that_cannot_be_verified_is_rejected() {
    let o = Command::new(env!("CARGO_BIN_EXE_seekwell"))
        .args(["verify-kernel", "bqf"])
        .output()
        .expect("runs");
    let err = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(2), "{err}");
    assert!(err.contains("`bfq`"), "{err}");
}
