//! Tests switches on simulated trees, whose files keep the written text: the order of writes,
//! locks, and records. Other tests run the program on loop devices, to test the effect on a kernel.

use super::journal::{Found, Records};
use super::*;
use crate::block::Machine;
use crate::block::made_up::MadeUp;

fn disk(name: &str) -> (MadeUp, Records) {
    let t = MadeUp::new(name);
    t.disk("sda", "ata1", "none [mq-deadline] kyber bfq")
        .queue("sda", "nr_requests", "256");
    t.put("sys/block/sda/diskseq", "7\n");
    t.queue("sda", "wbt_lat_usec", "75000")
        .queue("sda", "iosched/fifo_batch", "4");
    t.queue("sda", "iosched/read_expire", "500");
    t.put("proc/sys/kernel/random/boot_id", "one\n");
    let records = Records::at(t.at("run/seekwell"));
    (t, records)
}

fn scheduler(t: &MadeUp) -> String {
    Queue::new(t.tree().queue("sda")).scheduler().expect("read")
}

fn begin(
    m: &Machine,
    records: &Records,
    to: &str,
    set: &[(&str, &str)],
) -> Result<Switched, SwitchError> {
    let set: Vec<(String, String)> = set.iter().map(|s| (s.0.into(), s.1.into())).collect();
    let wish = Wish {
        device: m.device("sda").expect("sda"),
        scheduler: to,
        tunables: &set,
    };
    Switched::begin(m.tree(), records, &[wish], "a test")
}

#[test]
fn changed_settings_are_restored_at_the_end_and_on_drop() {
    let (t, records) = disk("switched");
    let m = t.machine();
    let s = begin(
        &m,
        &records,
        "bfq",
        &[("nr_requests", "64"), ("fifo_batch", "8")],
    )
    .expect("switched");
    assert_eq!(scheduler(&t), "bfq");
    assert!(records.dir().join("sda.json").exists());
    let c = &s.changes()[0];
    assert_eq!(c.before.scheduler, "mq-deadline");
    assert_eq!(c.after.attributes["nr_requests"], "64");
    let all = s.restore();
    assert!(
        matches!(&all[0], Ok(Found::Restored { device, .. }) if device == "sda"),
        "{all:?}"
    );
    assert_eq!(scheduler(&t), "mq-deadline");
    assert_eq!(
        std::fs::read_to_string(t.at("sys/block/sda/queue/nr_requests")).expect("read"),
        "256\n"
    );
    assert_eq!(
        std::fs::read_to_string(t.at("sys/block/sda/queue/iosched/fifo_batch")).expect("read"),
        "4\n"
    );
    assert!(!records.dir().exists(), "nothing is left");
    drop(begin(&m, &records, "kyber", &[]).expect("switched"));
    assert_eq!(scheduler(&t), "mq-deadline");
    let panicked = std::panic::catch_unwind(|| {
        let _s = begin(&m, &records, "none", &[]).expect("switched");
        assert_eq!(scheduler(&t), "none");
        std::panic::panic_any(());
    });
    assert!(panicked.is_err());
    assert_eq!(scheduler(&t), "mq-deadline");
    begin(&m, &records, "none", &[])
        .expect("switched")
        .keep()
        .expect("kept");
    assert_eq!(scheduler(&t), "none");
    assert!(!records.dir().exists());
}

#[test]
fn settings_are_written_back_while_the_device_stays_locked() {
    let (t, records) = disk("written back");
    let m = t.machine();
    let d = m.device("sda").expect("sda");
    let mut s = Switched::hold(m.tree(), &records, &[d], "a test").expect("locked");
    let set = [("fifo_batch".to_owned(), "8".to_owned())];
    let wish = Wish {
        device: d,
        scheduler: "mq-deadline",
        tunables: &set,
    };
    s.again(&[wish]).expect("set");
    let written = s.write_back().expect("written back");
    assert_eq!(written, ["sda: fifo_batch is 4"]);
    assert!(s.disturbed().is_empty() && records.is_held("sda"));
    assert!(s.write_back().expect("again").is_empty());
}

#[test]
fn only_a_lock_with_the_same_purpose_is_interrupted() {
    let (t, records) = disk("interrupted");
    let m = t.machine();
    let d = m.device("sda").expect("sda");
    assert_eq!(records.interrupt("sda", "a trial").expect("allowed"), None);
    let _s = Switched::hold(m.tree(), &records, &[d], "another purpose").expect("locked");
    assert_eq!(records.interrupt("sda", "a trial").expect("allowed"), None);
}

#[test]
fn failed_switch_leaves_every_setting_unchanged() {
    let (t, records) = disk("refused");
    let m = t.machine();
    let e = begin(
        &m,
        &records,
        "bfq",
        &[("nr_requests", "64"), ("no_such", "8")],
    )
    .expect_err("no");
    assert!(e.to_string().contains("has no tunable \"no_such\""), "{e}");
    assert_eq!(scheduler(&t), "mq-deadline");
    assert!(!records.dir().exists());
}

#[test]
fn two_concurrent_switches_exclude_each_other() {
    let (t, records) = disk("two");
    let m = t.machine();
    let first = begin(&m, &records, "bfq", &[]).expect("switched");
    let e = begin(&m, &records, "kyber", &[])
        .expect_err("held")
        .to_string();
    assert!(e.starts_with("sda is being switched by process "), "{e}");
    assert!(e.contains("(a test)"), "{e}");
    assert!(records.left().is_empty(), "it lives");
    assert_eq!(scheduler(&t), "bfq");
    drop(first);
    assert!(begin(&m, &records, "kyber", &[]).is_ok());
}

/// Simulates kill -9: the record exists, and no process holds the lock.
fn killed(m: &Machine, records: &Records) {
    let s = begin(m, records, "bfq", &[]).expect("switched");
    let record = records.dir().join("sda.json");
    let text = std::fs::read(&record).expect("written");
    s.keep().expect("kept");
    std::fs::create_dir_all(records.dir()).expect("made");
    std::fs::write(&record, text).expect("written");
}

#[test]
fn settings_of_a_killed_run_are_restored_once() {
    let (t, records) = disk("killed");
    let m = t.machine();
    killed(&m, &records);
    assert_eq!(
        (scheduler(&t).as_str(), records.left()),
        ("bfq", vec!["sda".to_owned()])
    );
    let all = records.restore(&t.tree(), None);
    assert!(
        matches!(&all[..], [Ok(Found::Restored { scheduler, .. })] if scheduler == "mq-deadline"),
        "{all:?}"
    );
    assert_eq!(scheduler(&t), "mq-deadline");
    assert!(records.restore(&t.tree(), None).is_empty() && !records.dir().exists());
}

/// An ending process closes its pipe before its lock. The guard process waits for both.
#[test]
fn guard_process_waits_for_the_lock() {
    let (t, records) = disk("guardian");
    let m = t.machine();
    let me = std::process::id();
    let long = std::time::Duration::from_secs(60);
    assert!(records.restore_of(&t.tree(), me, long).is_empty());
    killed(&m, &records);
    assert!(
        records.restore_of(&t.tree(), me + 1, long).is_empty(),
        "another's"
    );
    let lock = std::fs::File::create(records.dir().join("sda.lock")).expect("made");
    lock.try_lock().expect("free");
    let short = std::time::Duration::from_millis(30);
    assert!(records.restore_of(&t.tree(), me, short).is_empty(), "held");
    assert_eq!(scheduler(&t), "bfq");
    let all = std::thread::scope(|s| {
        let waits = s.spawn(|| records.restore_of(&t.tree(), me, long));
        std::thread::sleep(short);
        drop(lock);
        waits.join().expect("no panic")
    });
    assert!(matches!(&all[..], [Ok(Found::Restored { .. })]), "{all:?}");
    assert_eq!(scheduler(&t), "mq-deadline");
}

#[test]
fn record_of_another_device_or_boot_is_not_applied() {
    let moot = |change: &dyn Fn(&MadeUp), why: &str| {
        let (t, records) = disk("moot");
        killed(&t.machine(), &records);
        change(&t);
        let all = records.restore(&t.tree(), None);
        let said = |f: &Found| matches!(f, Found::Moot { why: w, .. } if w.contains(why));
        assert!(matches!(&all[..], [Ok(f)] if said(f)), "{all:?}");
        assert!(records.left().is_empty());
        t
    };
    let t = moot(
        &|t| {
            t.put("sys/block/sda/diskseq", "8\n");
        },
        "another device",
    );
    assert_eq!(scheduler(&t), "bfq", "not touched");
    let t = moot(
        &|t| {
            t.put("proc/sys/kernel/random/boot_id", "two\n");
        },
        "booted",
    );
    assert_eq!(scheduler(&t), "bfq", "not touched");
    moot(
        &|t| std::fs::remove_file(t.at("sys/block/sda")).expect("gone"),
        "gone",
    );
}

#[test]
fn planted_record_is_rejected() {
    use std::os::unix::fs::PermissionsExt;
    let (t, records) = disk("planted");
    killed(&t.machine(), &records);
    let path = records.dir().join("sda.json");
    let text = std::fs::read_to_string(&path).expect("read");
    for bad in [
        text.replace("\"device\":\"sda\"", "\"device\":\"../sda\""),
        text.replace("\"nr_requests\"", "\"../../x\""),
        "{".to_owned(),
        String::new(),
    ] {
        std::fs::write(&path, bad).expect("written");
        let all = records.restore(&t.tree(), None);
        assert!(
            matches!(&all[..], [Err(SwitchError::Unreadable { .. })]),
            "{all:?}"
        );
        assert_eq!(scheduler(&t), "bfq");
    }
    std::fs::write(&path, text).expect("written");
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(&path, open).expect("changed");
    let all = records.restore(&t.tree(), None);
    assert!(
        matches!(&all[..], [Err(SwitchError::Unreadable { .. })]),
        "{all:?}"
    );
}

fn settings(scheduler: &str, attributes: &[(&str, &str)], tunables: &[(&str, &str)]) -> Settings {
    let map = |all: &[(&str, &str)]| all.iter().map(|p| (p.0.into(), p.1.into())).collect();
    Settings {
        scheduler: scheduler.into(),
        attributes: map(attributes),
        tunables: map(tunables),
    }
}

fn change(before: Settings, after: Settings, asked: &[&str]) -> Change {
    Change {
        device: "sda".into(),
        before,
        after,
        asked: asked.iter().map(|a| a.to_string()).collect(),
        notes: Vec::new(),
    }
}

/// The command that undoes a change contains the settings that the user had set. It does not
/// contain those that the kernel restores automatically.
#[test]
fn undo_command_lists_settings_that_the_kernel_does_not_restore() {
    let deadline = [
        ("fifo_batch", "4"),
        ("read_expire", "500"),
        ("async_depth", "192"),
    ];
    let before = settings(
        "mq-deadline",
        &[("nr_requests", "256"), ("wbt_lat_usec", "2000")],
        &deadline,
    );
    let bfq = settings(
        "bfq",
        &[("nr_requests", "256"), ("wbt_lat_usec", "0")],
        &[("low_latency", "1")],
    );
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let c = change(before.clone(), bfq.clone(), &[]);
    assert_eq!(
        c.back(),
        ("mq-deadline".into(), vec![pair("fifo_batch", "4")])
    );
    let beside: Vec<String> = c.side_effects().into_iter().map(|d| d.name).collect();
    assert_eq!(beside, ["wbt_lat_usec"]);
    let none = settings(
        "none",
        &[("nr_requests", "128"), ("wbt_lat_usec", "2000")],
        &[],
    );
    let c = change(before.clone(), none.clone(), &[]);
    assert_eq!(
        c.back().1,
        [pair("fifo_batch", "4")],
        "twice the tags come by themselves"
    );
    let c = change(none.clone(), bfq.clone(), &[]);
    assert_eq!(c.back(), ("none".into(), vec![]));
    let small = settings(
        "mq-deadline",
        &[("nr_requests", "64"), ("wbt_lat_usec", "2000")],
        &[],
    );
    let c = change(small, bfq.clone(), &["wbt_lat_usec"]);
    assert_eq!(
        c.back().1,
        [pair("nr_requests", "64"), pair("wbt_lat_usec", "2000")]
    );
    let other = settings("bfq", &[("nr_requests", "256")], &[("low_latency", "0")]);
    let c = change(bfq, other, &["low_latency"]);
    assert!(
        c.back().1.contains(&pair("low_latency", "1")),
        "{:?}",
        c.back()
    );
}

#[test]
fn requested_settings_are_checked_before_any_change() {
    let (t, _) = disk("check");
    let m = t.machine();
    let said = |device: &str, scheduler: &str, name: &str, value: &str| {
        let set = [(name.to_owned(), value.to_owned())];
        let wish = Wish {
            device: m.device(device).expect("there"),
            scheduler,
            tunables: if name.is_empty() { &[] } else { &set },
        };
        check(m.tree(), &wish)
    };
    assert_eq!(said("sda", "bfq", "low_latency", "0"), Ok(()));
    assert_eq!(
        said("sda", "bfq", "of_tomorrow", "0"),
        Ok(()),
        "the kernel will tell"
    );
    let no = |r: Result<(), String>| r.expect_err("refused");
    let e = no(said("sda", "bfq", "fifo_batch", "1"));
    assert!(
        e.contains("bfq has no tunable \"fifo_batch\" (it is mq-deadline's)"),
        "{e}"
    );
    assert!(no(said("sda", "none", "nr_requests", "64")).contains("fewer tags"));
    assert!(no(said("sda", "bfq", "low_latency", "0 1")).contains("is not a number"));
    assert!(no(said("sda", "cfq", "", "")).contains("`bfq`"));
}

/// Linux 6.10 introduced zone write plugging.
#[test]
fn zoned_disk_accepts_any_scheduler_since_6_10() {
    let (t, _) = disk("zoned");
    t.disk("sdz", "ata2", "none [mq-deadline] bfq")
        .queue("sdz", "zoned", "host-managed");
    let m = t.machine();
    let said = |scheduler: &str| {
        let wish = Wish {
            device: m.device("sdz").expect("there"),
            scheduler,
            tunables: &[],
        };
        check(m.tree(), &wish)
    };
    for (release, allowed) in [
        ("", false),
        ("5.15.0-91-generic", false),
        ("6.1.55", false),
        ("6.9.12", false),
        ("6.10.0", true),
        ("6.12.9", true),
        ("7.0.1", true),
    ] {
        t.put("proc/sys/kernel/osrelease", format!("{release}\n"));
        assert_eq!(said("mq-deadline"), Ok(()), "{release}");
        match (allowed, said("bfq")) {
            (true, said) => assert_eq!(said, Ok(()), "{release}"),
            (false, said) => {
                let e = said.expect_err("refused");
                let why = "keeps the order of writes to a zone only under mq-deadline";
                assert!(e.contains(why) && e.contains(release), "{e}");
            }
        }
    }
}

#[test]
fn rounding_to_ticks_and_pages_is_accepted() {
    assert!(rounded("read_expire", "7", "8") && rounded("read_ahead_kb", "3", "0"));
    assert!(!rounded("read_expire", "7", "80") && !rounded("fifo_batch", "7", "8"));
    assert!(!rounded("nomerges", "3", "1") && !rounded("read_expire", "x", "8"));
}

/// The tree is a copy of another machine's tree. Its files would keep any text, so the test shows
/// that nothing is written.
#[test]
fn unknown_tunable_leaves_the_tree_byte_for_byte() {
    let (t, records) = disk("unknown-tunable");
    let files = ["scheduler", "nr_requests", "iosched/fifo_batch"];
    let read = || files.map(|f| std::fs::read(t.tree().queue("sda").join(f)).expect("read"));
    let before = read();
    let m = t.machine();
    for set in [
        &[("warp", "9")][..],
        &[("nr_requests", "64"), ("warp", "9")],
    ] {
        for to in ["bfq", "mq-deadline"] {
            let e = begin(&m, &records, to, set).expect_err("no such tunable");
            assert!(e.to_string().contains("no tunable \"warp\""), "{e}");
            assert_eq!(read(), before, "{to} {set:?}");
        }
    }
    assert!(!records.dir().exists());
}

#[test]
fn copied_tree_shows_written_settings_like_a_kernel() {
    let (t, records) = disk("as-shown");
    let m = t.machine();
    let text = |f: &str| std::fs::read_to_string(t.tree().queue("sda").join(f)).expect("read");
    let before = (text("scheduler"), text("nr_requests"));
    let s = begin(&m, &records, "bfq", &[("nr_requests", "64")]).expect("switched");
    assert_eq!(text("scheduler").trim_end(), "none mq-deadline kyber [bfq]");
    assert_eq!(text("nr_requests").trim_end(), "64");
    assert!(s.restore().iter().all(Result::is_ok));
    assert_eq!((text("scheduler"), text("nr_requests")), before);
}

#[test]
fn run_without_wbt_setting_gets_the_kernels_default() {
    let (t, records) = disk("throttle");
    let m = t.machine();
    let d = m.device("sda").expect("sda");
    let mut held = Switched::hold(m.tree(), &records, &[d], "a test").expect("held");
    let wbt = || {
        let queue = Queue::new(m.tree().queue("sda"));
        queue.value("wbt_lat_usec").expect("it has it")
    };
    let mut set = |scheduler: &str, tunables: &[(&str, &str)]| {
        let tunables: Vec<(String, String)> = tunables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let wish = Wish {
            device: d,
            scheduler,
            tunables: &tunables,
        };
        held.again(&[wish]).expect("set");
    };
    set("bfq", &[]);
    assert_eq!(wbt(), "75000", "a copy has no kernel to switch it off");
    set("none", &[("wbt_lat_usec", "0")]);
    assert_eq!(wbt(), "0");
    // The value that an earlier run requested must not be kept.
    set("bfq", &[]);
    assert_eq!(wbt(), "75000");
    set("bfq", &[("wbt_lat_usec", "2001")]);
    set("none", &[]);
    assert_eq!(wbt(), "75000");
    let all = held.restore();
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(
        (wbt(), scheduler(&t)),
        ("75000".to_owned(), "mq-deadline".to_owned())
    );
}

/// bfq switches throttling off, and a write of the stored value has no effect. This gives a note
/// and not an error.
#[test]
fn ineffective_wbt_target_gives_a_note() {
    assert_eq!(
        no_change("bfq", "2000"),
        "wbt_lat_usec: 2000 had no effect: bfq keeps throttling off, and the kernel ignores a \
         write of the value that it already stores; to enable it, write 2001"
    );
}
