//! Reads published lines of the public collections exactly. Also tests traces with several volumes.

use crate::common::{Folder, error_of, read, reader};
use seekwell_core::Op;
use seekwell_trace::{ErrorKind, Intake, ReadOptions, Record, find_format};

fn sample(name: &str) -> Vec<u8> {
    crate::common::written(find_format(name).unwrap(), &[])
}

fn of_volume(volume: &str) -> ReadOptions {
    ReadOptions {
        volume: Some(volume.to_owned()),
        ..ReadOptions::default()
    }
}

fn at(r: &Record) -> (u64, Op, u64, u32, Option<u64>) {
    (r.t_ns, r.op, r.sector.0, r.sectors.0, r.latency_ns())
}

#[test]
fn msr_times_are_steps_of_100_ns() {
    let mut r = reader(&sample("msr"), None, &ReadOptions::default()).unwrap();
    assert_eq!(r.format().name, "msr");
    let got: Vec<_> = r.by_ref().map(|r| at(&r.unwrap())).collect();
    // 128166372016382155 - 128166372003061629 = 13320526 steps.
    let want = [
        (0, Op::Read, 13_700_410, 48, Some(4_128_600)),
        (1_332_052_600, Op::Write, 2_573_128, 16, Some(196_300)),
        (2_332_061_600, Op::Write, 4_758_672, 8, Some(183_500)),
        (2_332_137_000, Op::Read, 4_758_672, 1, Some(10_000)),
    ];
    assert_eq!(got, want);
    assert_eq!(r.base_ns(), Some(12_816_637_200_306_162_900));
    assert_eq!(r.device_name(0), "usr_0");
    assert_eq!(r.warnings(), [""; 0]);
}

#[test]
fn systor_times_are_seconds_with_a_fraction() {
    let mut r = reader(&sample("systor"), None, &ReadOptions::default()).unwrap();
    assert_eq!(r.format().name, "systor");
    let got: Vec<_> = r.by_ref().map(|r| at(&r.unwrap())).collect();
    let want = [
        (0, Op::Read, 424_577_032, 16, Some(1_245_000)),
        (46_815_000, Op::Write, 8, 32, Some(999)),
        (946_815_500, Op::Write, 1, 2, None),
    ];
    assert_eq!(got, want);
    let told = r.warnings().join("\n");
    assert!(
        told.contains("1 lines without an operation") && told.contains("line 3"),
        "{told}"
    );
    // A part of a file that lacks the header can be read if the user gives the format.
    let whole = sample("systor");
    let from = whole.iter().position(|&c| c == b'\n').unwrap() + 1;
    let named = reader(
        &whole[from..],
        find_format("systor").ok(),
        &ReadOptions::default(),
    );
    assert_eq!(named.unwrap().flatten().count(), 3);
    assert_eq!(
        error_of(&whole[from..], None, &ReadOptions::default()).kind(),
        ErrorKind::UnknownFormat
    );
}

#[test]
fn alibaba_times_are_microseconds() {
    let mut r = reader(&sample("alibaba"), None, &of_volume("419")).unwrap();
    assert_eq!(r.format().name, "alibaba");
    let got: Vec<_> = r.by_ref().map(|r| at(&r.unwrap())).collect();
    let want = [
        (0, Op::Write, 17_173_304, 32, None),
        (1_954_000, Op::Write, 17_173_336, 8, None),
    ];
    assert_eq!(got, want);
    assert_eq!(r.base_ns(), Some(1_577_808_000_000_046_000));
    assert_eq!(r.warnings(), [""; 0], "one was chosen: nothing to tell");
}

#[test]
fn tencent_times_are_seconds_and_lengths_are_sectors() {
    let mut r = reader(&sample("tencent"), None, &of_volume("1283")).unwrap();
    assert_eq!(r.format().name, "tencent");
    let got: Vec<_> = r.by_ref().map(|r| at(&r.unwrap())).collect();
    let want = [
        (0, Op::Read, 12_910_952, 128, None),
        (0, Op::Read, 12_910_904, 8, None),
        (2_000_000_000, Op::Write, 8, 16, None),
    ];
    assert_eq!(got, want);
    assert!(r.warnings()[0].contains("whole seconds"));
}

#[test]
fn broken_lines_name_the_field() {
    for (format, from, to, says) in [
        (
            "msr",
            "Read,7014609920",
            "Trim,7014609920",
            "line 1: cannot read Type: \"Trim\"",
        ),
        ("msr", ",41286", "", "all fields of the format"),
        ("msr", ",41286", ",41286,1", "end of the line"),
        (
            "msr",
            "128166372003061629",
            "1281663720030616290",
            "Timestamp",
        ),
        (
            "systor",
            "1455592804.053185000",
            "1455592804,053185000",
            "line 2: cannot read",
        ),
        ("systor", ",R,3,", ",X,3,", "IOType: \"X\""),
        ("alibaba", "419,W", "419,w", "opcode"),
        (
            "alibaba",
            "8792731648,16384",
            "18446744073709551615,16384",
            "lie beyond any device",
        ),
        ("tencent", ",128,0,", ",128,2,", "IOType"),
    ] {
        let text = String::from_utf8(sample(format)).unwrap();
        assert!(text.contains(from), "{format}: {from}");
        let text = text.replacen(from, to, 1);
        let e = error_of(
            text.as_bytes(),
            find_format(format).ok(),
            &ReadOptions::default(),
        );
        assert!(e.to_string().contains(says), "{format}: {e}");
    }
}

#[test]
fn several_volumes_are_rejected_until_one_is_selected() {
    let folder = Folder::new();
    for (format, list, chosen) in [
        (
            "alibaba",
            "holds 3 volumes (records in the first 4): 419 (2), 12 (1), 725 (1)",
            "12",
        ),
        (
            "tencent",
            "holds 2 volumes (records in the first 4): 1283 (3), 1360 (1)",
            "1360",
        ),
    ] {
        let path = folder.file(format, &sample(format));
        let intake = Intake::new(&path, &ReadOptions::default()).unwrap();
        let e = intake
            .one_volume(None, &ReadOptions::default(), "--trace-device NAME")
            .unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Device);
        let text = e.to_string();
        assert!(
            text.contains(list) && text.contains("--trace-device"),
            "{text}"
        );
        intake
            .one_volume(None, &of_volume(chosen), "--trace-device NAME")
            .unwrap();
        assert_eq!(
            intake
                .open(None, &of_volume(chosen))
                .unwrap()
                .flatten()
                .count(),
            1
        );
        // If the user selects no volume, all volumes are read, with a warning.
        let mut all = intake.open(None, &ReadOptions::default()).unwrap();
        assert_eq!(all.by_ref().flatten().count(), 4);
        assert!(all.warnings().iter().any(|w| w.contains("treated as one")));
    }
    let one = folder.file("one", &sample("msr"));
    let intake = Intake::new(&one, &ReadOptions::default()).unwrap();
    intake
        .one_volume(None, &ReadOptions::default(), "--trace-device NAME")
        .unwrap();
}

/// One file contains disks of several hosts. The disks get numbers in the order in which they
/// appear, and names.
#[test]
fn disks_are_named_by_host_and_number() {
    let text = "100,usr,0,Read,0,512,9\n200,src1,2,Write,512,512,9\n300,usr,0,Read,512,512,9\n";
    let devices: Vec<u32> = read(text.as_bytes()).iter().map(|r| r.device).collect();
    assert_eq!(devices, [0, 1, 0]);
    for name in ["usr_0", "usr,0", "usr.0"] {
        let r = reader(text.as_bytes(), None, &of_volume(name)).unwrap();
        assert_eq!(r.flatten().count(), 2, "{name}");
    }
    let e = error_of(text.as_bytes(), None, &of_volume("usr_1"));
    let said = "no record of device usr_1; its devices are (records): usr_0 (2), src1_2 (1)";
    assert!(e.to_string().contains(said), "{e}");
}

#[test]
fn missing_device_or_process_is_reported_with_the_existing_ones() {
    let csv = "t_ns,op,sector,sectors,pid,device\n0,R,0,8,7,8:0\n5,R,8,8,9,8:16\n9,R,16,8,9,8:16\n";
    let with = |f: &dyn Fn(&mut ReadOptions)| {
        let mut o = ReadOptions::default();
        f(&mut o);
        error_of(csv.as_bytes(), None, &o).to_string()
    };
    let device = with(&|o| o.device = Some(99 << 20 | 99));
    let there = "no record of device 99,99; its devices are (records): 8,16 (2), 8,0 (1)";
    assert!(device.contains(there), "{device}");
    let pid = with(&|o| o.pids.extend([1]));
    assert!(
        pid.contains("no record of pid 1; its pids are (records): 9 (2), 7 (1)"),
        "{pid}"
    );
    let name = with(&|o| o.volume = Some("sda".to_owned()));
    assert!(
        name.contains("\"sda\" is not a device") && name.contains("MAJOR,MINOR"),
        "{name}"
    );
    let log = b"fio version 2 iolog\nf read 0 512\n";
    let e = error_of(log, None, &of_volume("8,0"));
    assert!(e.to_string().contains("has only one device"), "{e}");
    let o = ReadOptions {
        pids: [1].into(),
        ..ReadOptions::default()
    };
    assert!(error_of(log, None, &o).to_string().contains("has no pids"));
}

#[test]
fn window_and_process_filters_select_records() {
    let mut csv = "t_us,op,sector,n,pid,t_complete\n".to_owned();
    for i in 0..100u64 {
        csv += &format!(
            "{},R,{},8,{},{}\n",
            i * 1000,
            i * 8,
            i % 3,
            i * 1_000_000 + 500
        );
    }
    let options = ReadOptions {
        from_ns: 10_000_000,
        until_ns: Some(20_000_000),
        pids: [1].into(),
        ..ReadOptions::default()
    };
    let r = reader(csv.as_bytes(), None, &options).unwrap();
    let got: Vec<_> = r
        .map(|r| r.unwrap())
        .map(|r| (r.t_ns, r.complete_ns))
        .collect();
    // In the window, the records of process 1 are 10, 13, 16 and 19. Their times count from its
    // start.
    let want = [0, 3_000_000, 6_000_000, 9_000_000].map(|t| (t, Some(t + 500)));
    assert_eq!(got, want);
}

#[test]
fn tar_file_is_rejected_with_a_remedy() {
    let mut tar = vec![0u8; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    let e = error_of(&crate::common::gzip(&tar), None, &ReadOptions::default());
    assert!(e.to_string().contains("tar -x"), "{e}");
}

#[test]
fn missing_cpu_file_is_reported() {
    let folder = Folder::new();
    let trace = crate::common::written(
        find_format("blktrace").unwrap(),
        &[Record::new(0, Op::Read, 0, 8)],
    );
    for cpu in [0, 2, 3] {
        folder.file(&format!("sda.blktrace.{cpu}"), &trace);
    }
    let warnings = |name: &str| {
        let mut r =
            seekwell_trace::open(folder.0.join(name), None, &ReadOptions::default()).unwrap();
        assert!(r.by_ref().flatten().count() > 0);
        r.warnings().join("\n")
    };
    for name in ["sda", "sda.blktrace.0"] {
        let told = warnings(name);
        assert!(told.contains("no file of CPU 1 of 0 to 3"), "{told}");
    }
    let told = warnings("sda.blktrace.2");
    assert!(
        told.contains("only the records of CPU 2 of 3 CPUs"),
        "{told}"
    );
    folder.file("sda.blktrace.1", &trace);
    assert_eq!(warnings("sda"), "");
}
