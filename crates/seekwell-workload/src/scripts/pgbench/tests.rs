use crate::note::Mark;
use crate::testing::{Call, Trial};

#[test]
fn every_commit_is_durable_and_clients_share_flushes() {
    let given = [("scale", "2"), ("transactions", "500"), ("segments", "1")];
    let one = Trial::run("pgbench", &[given[0], given[1], given[2], ("clients", "1")]);
    assert_eq!(one.ops("transaction"), 500);
    // There is one flush per commit, and one more flush when the log reaches the next segment of 16
    // MiB.
    assert!((500..=510).contains(&one.calls_on("fdatasync", "wal.")));
    assert_eq!(one.left_over(), 0);
    let given = [("scale", "50"), ("transactions", "500"), ("segments", "8")];
    let quick = [
        ("clients", "16"),
        ("think", "10us"),
        ("client_think", "1us"),
    ];
    let many = Trial::run("pgbench", &[&given[..], &quick[..]].concat());
    let flushes = many.calls_on("fdatasync", "wal.");
    assert!(
        flushes < 4000,
        "16 clients, 8000 commits, {flushes} flushes: nobody shares"
    );
    assert!(many.metric() > 2.0 * one.metric());
}

#[test]
fn few_branches_cause_lock_waits_between_clients() {
    let given = |scale| [("scale", scale), ("transactions", "300"), ("clients", "16")];
    let hot = Trial::run("pgbench", &given("1"));
    let cold = Trial::run("pgbench", &given("50"));
    assert!(
        cold.metric() > 3.0 * hot.metric(),
        "{} {}",
        cold.metric(),
        hot.metric()
    );
}

#[test]
fn full_pages_are_logged_once_between_checkpoints() {
    let given = |fpw| {
        [
            ("scale", "1"),
            ("transactions", "4000"),
            ("clients", "1"),
            ("segments", "8"),
            ("full_page_writes", fpw),
            ("wal_buffers", "16m"),
        ]
    };
    let on = Trial::run("pgbench", &given("yes"));
    let off = Trial::run("pgbench", &given("no"));
    let log = |t: &Trial| -> u64 {
        let all = t.ranges("write", "wal.");
        all.iter().filter(|r| r.1 < 1 << 20).map(|r| r.1).sum()
    };
    // 4000 transactions change about 91 % of the 1640 pages of accounts, and 27 pages of history.
    let more = (log(&on) - log(&off)) as f64 / 8192.0;
    let touched = 1640.0 * (1.0 - (-4000.0f64 / 1640.0).exp()) + 27.0;
    assert!(
        (more / touched - 1.0).abs() < 0.03,
        "{more} pages, expected {touched}"
    );
}

#[test]
fn checkpoints_follow_log_volume_and_sync_every_file() {
    let given = [
        ("scale", "4"),
        ("transactions", "6000"),
        ("clients", "1"),
        ("segments", "1"),
        ("think", "1ms"),
    ];
    let t = Trial::run("pgbench", &given);
    let (starts, ends) = (t.marks(Mark::CheckpointStart), t.marks(Mark::CheckpointEnd));
    assert!(starts.len() >= 2, "{starts:?}");
    assert!(starts.len() - ends.len() <= 1);
    let each = ends.len();
    for file in [
        "accounts.0",
        "accounts_pkey.0",
        "tellers.0",
        "branches.0",
        "history.0",
        "pg_control",
    ] {
        let n = t.calls_on("fsync", file);
        assert_eq!(n, each, "{file}");
    }
    // pg_control is written after the tables and the record of the checkpoint are on disk.
    let log = t.world.log();
    let control = |c: &&Call| c.name == "write" && c.path.contains("pg_control");
    let task = log.iter().rev().find(control).expect("a checkpoint").task;
    let of: Vec<_> = log.iter().filter(|c| c.task == task).collect();
    for at in (0..of.len()).filter(|i| control(&of[*i])) {
        let before: Vec<_> = of[..at]
            .iter()
            .rev()
            .take(3)
            .map(|c| (c.name, c.path.contains("wal.")))
            .collect();
        assert_eq!(before[0], ("fdatasync", true), "{before:?}");
        assert_eq!(before[1], ("write", true), "{before:?}");
    }
}

#[test]
fn transaction_logs_its_records_and_each_full_page_once() {
    let given = [
        ("scale", "1"),
        ("transactions", "1"),
        ("clients", "1"),
        ("record", "1000"),
        ("wal_buffers", "16m"),
    ];
    let t = Trial::run("pgbench", &given);
    let log: Vec<_> = t
        .ranges("write", "wal.")
        .into_iter()
        .filter(|r| r.1 < 1 << 20)
        .collect();
    // Four whole pages (accounts, tellers, branches, history) and 1000 bytes of records: five pages
    // in one write.
    assert_eq!(log, [(0, 5 * 8192)]);
    assert_eq!(t.calls_on("fdatasync", "wal."), 1);
}

#[test]
fn select_only_mode_writes_nothing() {
    let given = [("mode", "select"), ("scale", "8"), ("transactions", "1000")];
    let t = Trial::run("pgbench", &given);
    assert_eq!(t.calls("fdatasync"), 0);
    assert_eq!(t.ops("page write"), 0);
    // The table has 102 MiB, and the buffers have 24 MiB.
    let reads = t.ops("page read");
    assert!((2000..4000).contains(&reads), "{reads}");
}

#[test]
fn small_buffers_make_backends_write() {
    let given = |b| {
        [
            ("scale", "8"),
            ("transactions", "2000"),
            ("shared_buffers", b),
        ]
    };
    let small = Trial::run("pgbench", &given("1m"));
    let large = Trial::run("pgbench", &given("1g"));
    assert!(
        small.ops("page write") > 2500,
        "{}",
        small.ops("page write")
    );
    assert_eq!(large.ops("page write"), 0);
}

#[test]
fn transactions_and_seconds_exclude_each_other() {
    let given = [("seconds".to_owned(), "10s".to_owned())];
    let e = crate::Plan::new("pgbench", &given).expect_err("both");
    assert!(
        e.to_string().contains("either transactions or seconds"),
        "{e}"
    );
}
