//! Extreme times, sizes and numbers are reported or handled.

use super::{good, scratch, seekwell};

/// Runs a command that must be refused with these words.
fn assert_rejected(args: &[&str], says: &[&str]) {
    let r = seekwell(args);
    assert_eq!(r.code, 2, "{args:?}: {}", r.err);
    for s in says {
        assert!(r.err.contains(s), "{args:?}: {}", r.err);
    }
}

#[test]
fn trace_with_unix_times_ends_on_every_disk() {
    let rows = "t_ns,op,sector,sectors\n0,R,400,8\n10000000000000000,W,800,8\n\
                1700000000000000000,R,1600,8\n";
    let file = scratch("epoch.csv", rows.as_bytes());
    let text = good(&["replay", &file, "-q", "-s", "noop,bfq"]);
    assert!(text.contains("noop") && text.contains("bfq"), "{text}");
    let late = scratch(
        "late.csv",
        format!("{rows}9000000000000000001,R,0,8\n").as_bytes(),
    );
    assert_rejected(
        &["replay", &late, "-s", "noop"],
        &["line 5: record 4", "285 years"],
    );
    let long = "t_ns,op,sector,sectors\n0,R,0,4294967295\n";
    let long = scratch("long.csv", long.as_bytes());
    let on = ["replay", &long, "-s", "noop", "-d", "hdd:exos-x18"];
    assert_rejected(&on, &["record 1: a request of 4294967295 sectors", "4 GiB"]);
}

#[test]
fn raw_device_beyond_16_tib_is_read_where_it_is() {
    let job = |at: &str| {
        format!("[j]\nfilename=/dev/sda\nrw=read\nbs=1m\ndirect=1\nsize=64m\noffset={at}\n")
    };
    let seconds = |at: &str| {
        let file = scratch(&format!("at-{at}.fio"), job(at).as_bytes());
        let args = [
            "run",
            &file,
            "-d",
            "hdd:exos-x24",
            "-s",
            "none",
            "--seeds",
            "1",
        ];
        let out = good(&[&args[..], &["--json"]].concat());
        let v: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        v["records"][0]["duration_ns"].as_f64().expect("a time")
    };
    // The inner edge is slower than the outer edge.
    let ratio = seconds("20t") / seconds("1t");
    assert!((1.6..2.2).contains(&ratio), "{ratio}");
}

#[test]
fn every_machine_option_reports_its_range() {
    for (option, says) in [
        ("aged=2147483648", "a mean run of 1..=32768 blocks"),
        ("memory=18446744073709551615", "a size of 16M to 4096G"),
        ("cache=5000G", "a size of 1M to 4096G"),
        ("cores=65536", "a number of 1..=1024"),
        ("limit=99999999999", "a number of seconds, 1..=1000000000"),
        ("barriers=2", "yes or no"),
        ("fs=ntfs", "ext3 or ext4"),
        ("without=everything", "there are plugging"),
    ] {
        let args = [
            "compare",
            "-d",
            "emmc:motog",
            "-w",
            "fs-mark:files=3",
            "-s",
            "noop",
            "--machine",
            option,
        ];
        assert_rejected(&args, &["--machine", says]);
    }
    for option in [
        "aged=32768",
        "memory=4096G",
        "memory=16M",
        "cache=4096G",
        "cache=1M",
        "cores=1024",
        "limit=1000000000",
    ] {
        let args = [
            "run",
            "fs-mark",
            "-q",
            "-d",
            "emmc:motog",
            "--param",
            "files=3",
            "-s",
            "noop",
            "--machine",
            option,
        ];
        good(&args);
    }
}

#[test]
fn nested_and_multiplied_devices_are_limited() {
    let cube = "raid0:members=64,of=(raid0:members=64,of=(raid0:members=64))";
    assert_rejected(
        &["replay", "none.csv", "-d", cube, "-s", "noop"],
        &["consists of 262144 devices", "the limit is 512 devices"],
    );
    let deep = (0..12).fold("hdd:hitachi-7k200".to_owned(), |d, _| {
        format!("virtual:over=({d})")
    });
    assert_rejected(
        &["replay", "none.csv", "-d", &deep, "-s", "noop"],
        &["devices are nested more than 8 levels deep"],
    );
}

#[test]
fn fio_job_continues_without_fallocate() {
    let job = "[w]\nfilename=t\nsize=1m\ndirect=1\nbs=4k\nrw=randwrite\n";
    let file = scratch("nofallocate.fio", job.as_bytes());
    let text = good(&["run", &file, "-q", "--details", "-s", "deadline-2.6.18,cfq"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("goes on without fallocate"), "{text}");
    // Both schedulers wrote everything. The text says so for the mean and for the 99th percentile.
    assert_eq!(words.matches("(n 256)").count(), 4, "{text}");
    let job = "[r]\nsize=1m\nbs=4k\nrw=randread:8\n";
    let file = scratch("runs.fio", job.as_bytes());
    good(&["run", &file, "-q", "-s", "noop"]);
}
