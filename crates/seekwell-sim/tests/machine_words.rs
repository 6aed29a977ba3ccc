//! Options of `--machine` have their documented effect, and without options nothing changes.

use seekwell_core::result::Record;
use seekwell_sim::Setup;
use seekwell_sim::spec::{Hooks, RunSpec, checked, machine, run, words};

const DISK: &str = "hdd:hitachi-7k200";

fn spec(workload: &str, list: &str) -> RunSpec {
    let mut spec = words::run(workload, DISK, "deadline-3.4").expect("good words");
    let typed = machine::typed(list).unwrap_or_else(|e| panic!("{list}: {e}"));
    spec.machine = Some(typed.spec);
    spec
}

fn ran(workload: &str, list: &str) -> Record {
    run(&spec(workload, list), Hooks::default()).expect("it runs")
}

fn metric(r: &Record) -> f64 {
    r.metric.as_ref().map_or(0.0, |m| m.value)
}

fn hash(list: &str) -> String {
    checked(&spec("fs-mark:files=2", list))
        .expect("good")
        .hash()
}

/// These hashes were computed before the options existed.
#[test]
fn specification_without_the_new_options_keeps_its_hash() {
    let mut s = words::run("fs-mark:files=2", "ssd:x25m-g2-160", "deadline").expect("good words");
    s.machine = machine::typed("memory=2G,without=plugging")
        .map(|t| t.spec)
        .ok();
    let whole = checked(&s).expect("good");
    assert_eq!(
        whole.hash(),
        "7dddeaf631428142e8adf714f63b4cfa6ad6f761453a259ace86e10bf9237136"
    );
}

#[test]
fn default_values_given_explicitly_keep_the_hash() {
    let usual = hash("");
    for same in [
        "cpu=1",
        "cpu=1.000",
        "data=ordered",
        "commit=5",
        "commit=0",
        "dirty_ratio=20,dirty_background_ratio=10",
        "vm.dirty_expire_centisecs=3000",
        "dirty_writeback_centisecs=500",
        "barrier=1",
        "placement=drawn",
        "phase=boot",
        "barrier",
        "noatime",
    ] {
        assert_eq!(hash(same), usual, "{same}");
    }
    for other in [
        "cpu=0.5",
        "data=writeback",
        "commit=30",
        "dirty_ratio=40",
        "dirty_bytes=64M",
        "dirty_background_bytes=64M",
        "dirty_writeback_centisecs=0",
        "nobarrier",
        "placement=first",
        "phase=drawn",
        "laptop",
    ] {
        let h = hash(other);
        assert_ne!(h, usual, "{other}");
        let once = checked(&spec("fs-mark:files=2", other)).expect("good");
        assert_eq!(
            checked(&once).map(|s| s.hash()),
            Ok(h),
            "{other}: checked twice"
        );
    }
}

#[test]
fn slower_core_slows_only_cpu_bound_work() {
    let work = |cpu: &str| {
        let all = ran(
            "fs-mark:files=200,size=4KiB,sync=none",
            &format!("cores=1,cpu={cpu}"),
        );
        metric(&all)
    };
    let (slow, usual, fast) = (work("0.1"), work("1"), work("10"));
    println!(
        "files/s, buffered, at 0.1, 1 and 10 of the usual core: {slow:.0} {usual:.0} {fast:.0}"
    );
    assert!(usual / slow > 8.0 && usual / slow < 10.5, "{slow} {usual}");
    assert!(fast / usual > 5.0, "{usual} {fast}");
    let disk = |cpu: &str| metric(&ran("seeker:seconds=3s", &format!("cpu={cpu}")));
    let (half, usual) = (disk("0.5"), disk("1"));
    println!("seeks/s at 0.5 and 1: {half:.1} {usual:.1}");
    assert!((half / usual - 1.0).abs() < 0.01, "{half} {usual}");
}

#[test]
fn dirty_limits_determine_when_writers_are_throttled() {
    // Seconds until a gigabyte is written. A memory of 4 GB can buffer a part of it.
    let seconds = |list: &str| 16.0 / metric(&ran("fs-mark:files=16,size=64MiB,sync=none", list));
    let usual = seconds("memory=4G");
    let much = seconds("memory=4G,dirty_ratio=80,dirty_background_ratio=60");
    let little = seconds("memory=4G,dirty_bytes=16M,dirty_background_bytes=8M");
    println!("usual {usual:.2} s, much {much:.2} s, little {little:.2} s");
    assert!(
        10.0 * much < usual && little > 2.0 * usual,
        "{much} {usual} {little}"
    );
}

#[test]
fn commit_interval_determines_the_number_of_commits() {
    let journal = |list: &str| {
        let r = ran(
            "streams:kind=write,streams=1,size=64m,think=20ms,seconds=30s",
            list,
        );
        let of = r.processes.iter().find(|p| p.name == "journal");
        of.map_or(0, |p| p.ios)
    };
    let (often, usual, never) = (journal("commit=1"), journal(""), journal("commit=300"));
    println!("journal requests in 30 s: commit=1 {often}, 5 {usual}, 300 {never}");
    assert!(
        often > 2 * usual && usual > never,
        "{often} {usual} {never}"
    );
}

#[test]
fn unmodelled_or_invalid_options_are_rejected_with_the_list() {
    for (list, said) in [
        (
            "relatime",
            "modelled are data=ordered, data=writeback, commit=SECONDS",
        ),
        ("discard", "is a mount option that is not modelled"),
        ("data=journal", "\"journal\" is not ordered or writeback"),
        ("cpu=0.04", "a number of 0.05..=20"),
        ("cpu=21", "a number of 0.05..=20"),
        ("cpu=0.0600", "at most three decimals"),
        ("cpu=.", "a number of 0.05..=20"),
        ("cpu=-1", "a number of 0.05..=20"),
        ("cpu", "a number of 0.05..=20"),
        ("dirty_ratio=0", "a number of 1..=100 percent"),
        ("dirty_ratio=101", "a number of 1..=100 percent"),
        ("dirty_bytes=1", "a size of 8k to 4096G"),
        ("commit=86401", "a number of 0..=86400 seconds"),
        (
            "dirty_writeback_centisecs=8640001",
            "hundredths of a second",
        ),
        ("dirty_ration=10", "did you mean `dirty_ratio`?"),
        ("noatime=maybe", "there is no option \"noatime\""),
    ] {
        let e = machine::typed(list).expect_err(list).to_string();
        assert!(e.contains(said), "{list}: {e}");
    }
    let both = checked(&spec("fs-mark:files=2", "dirty_ratio=30,dirty_bytes=64M"));
    let e = both.expect_err("both").to_string();
    assert!(
        e.contains("machine.dirty_bytes: dirty_ratio is given as well"),
        "{e}"
    );
    let mut wrong = spec("fs-mark:files=2", "");
    wrong.machine = wrong.machine.map(|mut m| {
        (m.cpu_permille, m.commit_s, m.data) = (Some(1), Some(u32::MAX), Some("ordred".into()));
        m.dirty_expire_centisecs = Some(u32::MAX);
        m
    });
    let e = checked(&wrong).expect_err("four faults");
    assert_eq!(e.0.len(), 4, "{e}");
    assert!(e.to_string().contains("did you mean `ordered`?"), "{e}");
}

#[test]
fn documented_machine_options_are_exactly_the_accepted_ones() {
    for w in machine::WORDS {
        let value = match w.name {
            "kernel" => "3.4",
            "memory" | "cache" | "dirty_bytes" | "dirty_background_bytes" => "64M",
            "fs" => "ext4",
            "data" => "writeback",
            "placement" => "first",
            "phase" => "drawn",
            "without" => "plugging",
            "noatime" => "",
            "read_ahead_kb" => "64",
            _ => "1",
        };
        let text = match value {
            "" => w.name.to_owned(),
            value => format!("{}={value}", w.name),
        };
        assert!(machine::typed(&text).is_ok(), "{text}");
        assert!(!w.help.is_empty(), "{}", w.name);
    }
}

fn run_on(workload: &str, device: &str, scheduler: &str, machine_list: &str) -> Record {
    let mut s = words::run(workload, device, scheduler).expect("good words");
    let typed = machine::typed(machine_list).expect("good words");
    s.machine = Some(typed.spec);
    run(&s, Hooks::default()).expect("it runs")
}

/// A window of 128 KiB spans two strips of 64 KiB, so one reader keeps two disks busy, whatever
/// their number is. Kernels therefore make the window two rows long: for md in all versions, and
/// since 5.10 for other devices that report rows.
#[test]
fn single_reader_keeps_two_array_members_busy() {
    let rate = |device: &str, scheduler: &str, list: &str| {
        metric(&run_on(
            "streams:streams=1,seconds=3s",
            device,
            scheduler,
            list,
        ))
    };
    let disk = rate("hdd:hitachi-7k500", "mq-deadline", "");
    for (array, scheduler) in [
        ("raid0:members=28,of=hdd:hitachi-7k500", "mq-deadline"),
        ("raid0:members=28,of=hdd:hitachi-7k500", "deadline-2.6.18"),
        ("controller:level=raid0,members=28", "mq-deadline"),
    ] {
        let before = rate(array, scheduler, "read_ahead_kb=128") / disk;
        let now = rate(array, scheduler, "") / disk;
        println!("{array} {scheduler}: {before:.1} disks' rate, {now:.1} as the kernel sets it");
        assert!(now > before * 1.15, "{array} {scheduler}: {before} {now}");
    }
    // In the model, the larger window does not help here. A drive that has a second command does
    // not read ahead across the parity between its strips, but waits for the next strip. This
    // behaviour is an estimate.
    let array = "raid5:members=5,of=hdd:hitachi-7k500";
    let [before, now] = ["read_ahead_kb=128", ""].map(|list| rate(array, "none", list) / disk);
    println!("{array}: {before:.1}, {now:.1}");
    let alone = "raid5:members=5,of=(hdd:hitachi-7k500,depth=1)";
    assert!(rate(alone, "none", "") / disk > 0.95 * before);
    // Before 5.10 the kernel does not ask a controller.
    let array = "controller:level=raid0,members=28";
    let [before, now] = ["read_ahead_kb=128", ""].map(|list| rate(array, "noop", list));
    assert_eq!(before, now);
}

/// The default queue/read_ahead_kb of the scheduler's kernel.
fn read_ahead_kb(device: &str, scheduler: &str) -> u32 {
    let s = words::run("hdparm", device, scheduler).expect("good words");
    let whole = checked(&s).expect(device);
    whole
        .machine
        .and_then(|m| m.read_ahead_kb)
        .expect("it is stated")
}

#[test]
fn read_ahead_window_is_two_rows_where_the_kernel_sets_it() {
    for (device, md_or_old, today) in [
        ("hdd:hitachi-7k500", 128, 128),
        ("raid0:members=4", 512, 512),
        ("raid0:members=28", 3584, 3584),
        ("raid0:members=4,chunk=4KiB", 128, 128),
        ("raid5:members=5,chunk=128KiB", 1024, 1024),
        ("raid10:members=4", 256, 256),
        ("raid1:members=2", 128, 128),
        ("controller:hwraid10-8-bbu", 128, 512),
        ("controller:level=raid1,members=2", 128, 128),
        ("remap:of=(raid0:members=4)", 128, 512),
        ("virtual:over=(raid0:members=4)", 128, 128),
    ] {
        for scheduler in ["cfq", "deadline-2.6.18"] {
            assert_eq!(
                read_ahead_kb(device, scheduler),
                md_or_old,
                "{device} {scheduler}"
            );
        }
        for scheduler in ["mq-deadline", "mq-deadline-5.10"] {
            assert_eq!(
                read_ahead_kb(device, scheduler),
                today,
                "{device} {scheduler}"
            );
        }
    }
    // An explicit value takes precedence.
    let mut s = words::run("hdparm", "raid0:members=4", "none").expect("good words");
    s.machine = machine::typed("read_ahead_kb=128").map(|t| t.spec).ok();
    let whole = checked(&s).expect("good");
    assert_eq!(whole.machine.and_then(|m| m.read_ahead_kb), Some(128));
}

/// The value is computed from what the device reports, without opening the device.
#[test]
fn read_ahead_window_follows_the_reported_optimal_request_size() {
    for device in [
        "raid0:members=4",
        "raid6:members=6,chunk=32KiB",
        "linear:of=(raid0:members=2)+(raid0:members=3)",
        "remap:of=(raid0:members=2)",
        "controller:hwraid10-8-bbu",
        "controller:level=raid1,members=2",
    ] {
        let setup = Setup {
            device: device.to_owned(),
            scheduler: "none".to_owned(),
            ..Setup::default()
        };
        let reported = setup.build().expect(device).device_facts().io_opt_bytes;
        let kb = (2 * reported / 1024).max(128);
        assert_eq!(read_ahead_kb(device, "none"), kb, "{device}");
    }
}

#[test]
fn record_states_whether_scheduler_cpu_time_is_charged() {
    let paid = |device: &str, list: &str| {
        let r = run_on("fs-mark:files=1", device, "mq-deadline", list);
        r.scheduler_charged
    };
    assert!(paid("ssd:nvme-gen4-tlc-2t", ""));
    for (device, list) in [
        ("ssd:nvme-gen4-tlc-2t", "without=scheduler-cpu"),
        ("ssd:nvme-gen4-tlc-2t", "without=cpu"),
        ("hdd:hitachi-7k500", ""),
        ("raid0:members=2,of=ssd:s3700-100", ""),
        ("linear:of=ssd:s3700-100", ""),
    ] {
        assert!(!paid(device, list), "{device} {list}");
    }
}
