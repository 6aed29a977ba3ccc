//! Compares the disk requests of a phone benchmark's transactions and writes with a running kernel.
//!
//! Measured with SQLite 3.40.1 on ext4 (4 KiB blocks, ordered data, no checksums) on a loop device,
//! Linux 6.18, from the block layer's trace events. The figures are synchronous writes, their KiB
//! and the flushes of one transaction in steady state, 150 ms before the next. A commit of the file
//! system may differ by two blocks, because its size depends on other changes. The null model for
//! comparison has no journal: one write per page of the database, and one flush.

use seekwell_core::{Action, Event, Flags, Op, TaskId};
use seekwell_sim::Setup;
use seekwell_sim::world::{Drive, WorldSetup, run_script_watched};
use seekwell_workload::Plan;
use std::cell::RefCell;
use std::rc::Rc;

const DISK: &str = "constant:depth=128,write_cache=yes,rotational=yes,capacity=8388608";
/// The modelled journal's thread.
const JOURNAL: TaskId = TaskId(2);

/// Number of synchronous writes, their KiB, number of flushes.
type Asked = [f64; 3];

/// All requests of a workload to a disk with this service time.
fn requests_of(workload: &str, service_us: u32) -> Asked {
    let setup = Setup {
        device: format!("{DISK},service_us={service_us}"),
        scheduler: "none-6.18".to_owned(),
        max_sectors_kb: Some(1280),
        ..Setup::default()
    };
    let world = WorldSetup::new(setup).expect("a world");
    let mut drive = Drive::open(&world.setup).expect("a disk");
    let total = Rc::new(RefCell::new([0.0; 3]));
    let into = Rc::clone(&total);
    let watch = Box::new(move |e: &Event| {
        if e.action != Action::Issue {
            return;
        }
        let mut t = into.borrow_mut();
        match e.op {
            Op::Flush => t[2] += 1.0,
            Op::Write if e.flags.contains(Flags::SYNC) || e.task == Some(JOURNAL) => {
                t[0] += 1.0;
                t[1] += f64::from(e.sectors.0) / 2.0;
            }
            _ => {}
        }
    });
    let plan = Plan::new(workload, &[]).expect("good parameters");
    let ran = run_script_watched("phone", &world, &mut drive, Some(watch), |m| plan.run(m));
    assert_eq!(ran.expect("it runs").stopped, None, "{workload}");
    total.take()
}

/// Requests of one more operation: the difference of two runs, so that their common parts cancel.
fn requests_of_one_operation(
    workload: &str,
    service_us: u32,
    count: &str,
    from: u32,
    to: u32,
) -> Asked {
    let [a, b] = [from, to].map(|n| requests_of(&format!("{workload},{count}={n}"), service_us));
    let each = f64::from(to - from);
    [0, 1, 2].map(|i| (b[i] - a[i]) / each)
}

#[test]
fn sqlite_transaction_sends_the_requests_of_the_library_on_a_running_kernel() {
    // Journal mode, kind and changed pages; then writes, KiB, flushes, and the commits among the
    // flushes.
    let seen = [
        ("delete", "insert", 3.0, [7.0, 64.0, 4.0], 1.0),
        ("delete", "update", 2.0, [6.0, 56.0, 4.0], 1.0),
        ("truncate", "insert", 3.0, [9.0, 76.0, 6.0], 2.0),
        ("truncate", "update", 2.0, [8.0, 68.0, 6.0], 2.0),
        ("persist", "insert", 3.0, [9.0, 48.0, 6.0], 1.0),
        ("persist", "update", 2.0, [8.0, 40.0, 6.0], 1.0),
        ("wal", "insert", 2.0, [3.0, 30.0, 2.0], 1.0),
    ];
    let mut right = 0;
    println!("journal kind: writes, KiB, flushes | seen | knowing nothing");
    for (mode, kind, pages, want, commits) in seen {
        let workload = format!("sqlite:journal={mode},kinds={kind},think=150ms");
        // No leaf splits between these rows, and the last leaf is not adjacent to other pages.
        let got = requests_of_one_operation(&workload, 200, "transactions", 336, 366);
        let null: Asked = [1.0, 4.0 * pages, 1.0];
        println!("{mode} {kind}: {got:.2?} | {want:?} | {null:?}");
        right += (0..3)
            .filter(|i: &usize| f64::abs(null[*i] - want[*i]) < 0.5)
            .count();
        assert!((got[0] - want[0]).abs() <= 1.0, "writes of {mode} {kind}");
        assert!(
            (got[1] - want[1]).abs() <= 8.0 * commits,
            "KiB of {mode} {kind}"
        );
        assert!((got[2] - want[2]).abs() <= 0.1, "flushes of {mode} {kind}");
    }
    println!("a model that knows nothing has {right} of 21");
    assert!(right < 3);
}

/// Observed: without the cache, an overwrite is one write. O_DSYNC adds a flush. O_SYNC adds the
/// commit of the file's times: two writes and two flushes.
#[test]
fn uncached_overwrite_costs_the_requests_of_its_open_flags() {
    for (how, want, slack) in [
        ("direct", [1.0, 4.0, 0.0], 0.05),
        ("dsync", [1.0, 4.0, 1.0], 0.05),
        ("sync", [3.0, 16.0, 2.0], 0.05),
    ] {
        let workload = format!("androbench-io:size=1m,write_size=1m,write={how}");
        // The disk is slow, so that each write falls into another tick of the kernel's clock.
        let got = requests_of_one_operation(&workload, 6000, "calls", 40, 90);
        println!("{how}: {got:.2?}, seen {want:?}");
        assert!(
            (got[0] - want[0]).abs() <= slack,
            "writes with {how}: {got:?}"
        );
        assert!((got[1] - want[1]).abs() <= 8.0, "KiB with {how}: {got:?}");
        assert!(
            (got[2] - want[2]).abs() <= slack,
            "flushes with {how}: {got:?}"
        );
    }
}
