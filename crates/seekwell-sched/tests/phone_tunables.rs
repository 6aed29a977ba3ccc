//! Tunables of the phone schedulers: show and store match the tables.

use seekwell_core::{Era, TickClock};
use seekwell_sched::{Cx, Kind, QueueFacts, Scheduler, StoreError, find};

const NAMES: [&str; 21] = [
    "zen",
    "zen-v1",
    "zen-jf",
    "zen-ge",
    "vr",
    "vr-tuna",
    "vr-jf",
    "vr-glitch",
    "sio",
    "sio-tuned",
    "sio-zenkernel",
    "sio-normandy",
    "sio-oneplus",
    "sio-v1",
    "fiops",
    "fiops-v1",
    "fiops-preempt",
    "row",
    "row-hisi",
    "row-mid",
    "row-v1",
];

fn make(name: &str, hz: u32) -> (Cx, Box<dyn Scheduler>) {
    let cx = Cx::new(QueueFacts::example(Era::K3_4), TickClock::new(hz));
    let Some((info, version, era)) = find(name) else {
        panic!("{name} is not registered");
    };
    assert_eq!(era, Era::K3_4);
    let sched = (info.make)(&cx, version);
    (cx, sched)
}

#[test]
fn new_scheduler_shows_its_defaults() {
    for name in NAMES {
        let (cx, sched) = make(name, 1000);
        let (info, version, _) = find(name).unwrap();
        let table = (info.tunables)(version);
        assert_eq!(table.len(), sched.tunables().len(), "{name}");
        for t in table {
            let want = t.default.strip_suffix(" jiffies").unwrap_or(t.default);
            let got = sched.show(&cx, t.name);
            assert_eq!(got.as_deref(), Some(want), "{name} {}", t.name);
            assert!(!t.help.is_empty() && !t.unit.is_empty());
        }
        assert_eq!(sched.show(&cx, "slice_idle"), None);
    }
}

#[test]
fn out_of_range_numbers_are_clamped() {
    for name in NAMES {
        let (mut cx, mut sched) = make(name, 1000);
        for t in sched.tunables().iter().filter(|t| t.kind != Kind::Text) {
            for (text, want) in [
                (t.min.to_string(), t.min),
                (t.max.to_string(), t.max),
                ((t.min - 1).to_string(), t.min),
                ((t.max + 1).to_string(), t.max),
                (i64::MIN.to_string(), t.min),
                (i64::MAX.to_string(), t.max),
            ] {
                assert_eq!(sched.store(&mut cx, t.name, &text), Ok(()));
                let got = sched.show(&cx, t.name);
                assert_eq!(got, Some(want.to_string()), "{name} {} {text}", t.name);
            }
        }
    }
}

#[test]
fn milliseconds_are_stored_in_jiffies() {
    // Defaults are divisions of HZ; writes round up.
    let (mut cx, mut zen) = make("zen-v1", 250);
    assert_eq!(zen.show(&cx, "sync_expire").as_deref(), Some("248"));
    zen.store(&mut cx, "sync_expire", "250").unwrap();
    assert_eq!(zen.show(&cx, "sync_expire").as_deref(), Some("252"));
    // These copies use jiffies where milliseconds were meant.
    let (cx, sio) = make("sio-oneplus", 100);
    assert_eq!(sio.show(&cx, "sync_read_expire").as_deref(), Some("10000"));
    assert_eq!(sio.show(&cx, "sync_write_expire").as_deref(), Some("50000"));
}

#[test]
fn invalid_values_and_unknown_names_are_reported() {
    for name in NAMES {
        let (mut cx, mut sched) = make(name, 1000);
        let unknown = sched.store(&mut cx, "slice_idle", "8");
        assert_eq!(unknown, Err(StoreError::unknown("slice_idle")), "{name}");
    }
    // The early elevators read invalid text as 0; row rejects it, where the original stored
    // uninitialized memory.
    let (mut cx, mut zen) = make("zen", 1000);
    assert_eq!(zen.store(&mut cx, "fifo_batch", "many"), Ok(()));
    assert_eq!(zen.show(&cx, "fifo_batch").as_deref(), Some("0"));
    let (mut cx, mut row) = make("row", 1000);
    assert!(row.store(&mut cx, "rd_idle_data", "long").is_err());
    assert_eq!(row.show(&cx, "rd_idle_data").as_deref(), Some("10"));
    let (mut cx, mut vr) = make("vr", 1000);
    let e = vr.store(&mut cx, "penalty_mode", "both").unwrap_err();
    assert!(e.to_string().contains("`remainder` nor `quotient`"), "{e}");
    vr.store(&mut cx, "penalty_mode", "quotient\n").unwrap();
    assert_eq!(vr.show(&cx, "penalty_mode").as_deref(), Some("quotient"));
    // A version rejects tunables that it does not have.
    let (mut cx, mut mid) = make("row-mid", 1000);
    assert!(mid.store(&mut cx, "reg_starv_limit", "5").is_err());
    let (mut cx, mut v1) = make("sio-v1", 1000);
    assert!(v1.store(&mut cx, "writes_starved", "5").is_err());
    assert!(v1.show(&cx, "sync_read_expire").is_none());
}
