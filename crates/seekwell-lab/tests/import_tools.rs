//! Results of small tools, and fio's text and terse output, are imported.

use super::import_formats::{of_text, read};
use seekwell_lab::results::Results;

/// The values of the runs of a workload, as (metric, value), in order.
fn figures(r: &Results, workload: &str) -> Vec<Vec<(String, f64)>> {
    let cell = r.cells.iter().position(|c| c.workload == workload);
    let cell = cell.unwrap_or_else(|| {
        let all: Vec<_> = r.cells.iter().map(|c| &c.workload).collect();
        panic!("no {workload} in {all:?}")
    });
    let runs = r.runs.iter().filter(|x| x.key.cell == cell);
    let values = |x: &seekwell_lab::results::Run| {
        x.values
            .iter()
            .map(|v| (v.metric.name.clone(), v.value))
            .collect()
    };
    runs.map(values).collect()
}

fn get(figures: &[(String, f64)], name: &str) -> f64 {
    let found = figures.iter().find(|f| f.0 == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {figures:?}"))
        .1
}

/// fio printed one run in three forms. The text and the terse form are rounded.
#[test]
fn fio_forms_of_one_run_agree() {
    let of = |file| figures(&read(&[file]), "fio mixed").remove(0);
    let json = of("fio/same-json.json");
    for (file, within) in [("fio/same-text.txt", 0.01), ("fio/same-terse.txt", 0.01)] {
        for (name, value) in of(file) {
            let exact = get(&json, &name);
            let near = (value - exact).abs() <= within * exact;
            // The terse form has whole microseconds.
            let rounded = name.contains("latency") && (value - exact).abs() <= 0.0011;
            assert!(near || rounded, "{file}: {name}: {value}, not {exact}");
        }
    }
    let text = of("fio/same-text.txt");
    assert_eq!(text.len(), json.len(), "{text:?}");
    for name in ["read IOPS", "write IOPS", "IOPS"] {
        assert!((get(&text, name) - get(&json, name)).abs() < 1e-3, "{name}");
    }
    assert_eq!(read(&["fio/same-text.txt"]).cells[0].device, "vda");
}

#[test]
fn fio_version_2_has_other_units() {
    let r = read(&["fio/fio-2.txt"]);
    let run = figures(&r, "fio random-read").remove(0);
    for (name, value) in [
        ("read IOPS", 523_166.0 / 180.001),
        ("read bandwidth", 11_627.0 / 1024.0),
        ("read latency mean", 0.2648),
        ("read latency p99.9", 2.008),
        ("write IOPS", 270_001.0 / 180.001),
        ("write bandwidth", 864_925.0 / 1_048_576.0),
        ("write latency p50", 2.0),
        ("write latency mean", 2.5),
    ] {
        let got = get(&run, name);
        assert!((got - value).abs() < 1e-9 * value.max(1.0), "{name}: {got}");
    }
    assert_eq!(r.cells[0].device, "sdb");
}

#[test]
fn small_tools_are_imported() {
    let marks = read(&["small/kdiskmark-bfq.txt"]);
    let run = figures(&marks, "Read Random 4 KiB (Q=32, T=16)").remove(0);
    assert_eq!(
        (run[0].1, run[1].1, run[2].1),
        (270.553, 67_638.2, 1_955.57)
    );
    assert_eq!(marks.treatments[0].label, "bfq");
    let crystal = read(&["small/crystaldiskmark.txt"]);
    let run = figures(&crystal, "Write SEQ 1MiB (Q=8, T=1)").remove(0);
    assert_eq!(run[0], ("bandwidth".to_owned(), 6500.188));
    let ioping = read(&["small/ioping.txt"]);
    assert_eq!(ioping.cells[0].device, "sda");
    let runs = figures(&ioping, "ioping");
    assert_eq!(
        (runs[0][0].1, runs[0][1].1, runs[0][2].1),
        (3.27, 7.75, 306.0)
    );
    assert!((runs[1][0].1 - 0.026).abs() < 1e-12 && runs[1][2].1 == 37_600.0);
    let hdparm = read(&["small/hdparm.txt"]);
    assert_eq!(
        figures(&hdparm, "hdparm buffered disk reads")[0][0].1,
        120.0
    );
    assert_eq!(
        figures(&hdparm, "hdparm O_DIRECT disk reads")[0][0].1,
        102.39
    );
    let dd = read(&["small/dd.txt"]);
    let runs = figures(&dd, "dd 4294967296 bytes");
    let rates: Vec<f64> = runs.iter().map(|r| (r[0].1 * 1e3).round() / 1e3).collect();
    assert_eq!(rates, [1717.987, 1073.742, 2147.484]);
    assert_eq!(figures(&dd, "dd 2097152 bytes").len(), 1);
}

#[test]
fn faults_of_small_tools_name_line_and_remedy() {
    for (text, says) in [
        (
            "job: (groupid=0, jobs=1): err= 0: pid=1: x\n  read: IOPS=fast, BW=1MiB/s (1MB/s)(1MiB/2msec)\n",
            "x, line 2: \"fast\" has an unknown unit",
        ),
        (
            "job: (groupid=0, jobs=1): err= 0: pid=1: x\n  read: IOPS=5, BW=1Mbit (1MB/s)(1MiB/2msec)\n",
            "x, line 2: \"1Mbit\" has an unknown unit",
        ),
        (
            "3;fio-3.33;job;0;0;100\n",
            "x, line 1: ends after field 6: fio was stopped",
        ),
        ("3;fio-3.33;job;0;0;1;x;1;1\n", "x, line 1: "),
        (
            "CrystalDiskMark 8\n[Read]\n  SEQ (Q=1): much MB/s\n",
            "x, line 3: \"much\"",
        ),
        ("CrystalDiskMark 8\n", "has no line with MB/s"),
        (
            "--- /dev/sda (block device 1 GiB) ioping statistics ---\n",
            "has no line \"min/avg/max/mdev\"",
        ),
        (
            "--- / (ext4) ioping statistics ---\nmin/avg/max/mdev = 1 ms / 2 eons / 3 ms / 4 ms\n",
            "x, line 2: \"2 eons\" is not a time",
        ),
        (
            " Timing cached reads: 5 MB in 2 seconds = 2 MB/sec\n",
            "run hdparm -t",
        ),
        (
            "5 bytes (5 B) copied, 2,5 s, 1 MB/s\n",
            "x, line 1: \"2,5\" has a comma; write 2.5",
        ),
        ("5 bytes (5 B) copied, 0 s, 1 MB/s\n", "took no time"),
    ] {
        let got = of_text(text).expect_err(says);
        assert!(got.contains(says), "{says}\n  got: {got}");
    }
}

#[test]
fn averages_over_intervals_are_rejected_with_a_remedy() {
    for (text, name) in [
        (
            "Linux 6.1\nDevice            r/s     rkB/s   rrqm/s  %rrqm r_await     w/s   %util\nsda 1 2 3 4 5 6 7\n",
            "iostat -x",
        ),
        (
            "Device:            tps    kB_read/s    kB_wrtn/s\n",
            "iostat",
        ),
        (
            " r  b   swpd   free   buff  cache   si   so    bi    bo\n",
            "vmstat",
        ),
        ("12:00:01  DEV  tps  rkB/s  wkB/s  %util\n", "sar -d"),
    ] {
        let got = of_text(text).expect_err(name);
        let says = format!("x: is output of {name}, which averages");
        assert!(
            got.contains(&says) && got.contains("--output-format=json"),
            "{got}"
        );
    }
}
