//! Traces of perf, bcc and perf-tools, of simulators, and of any delimited text.

use crate::common::{error_of, read, reader, written};
use seekwell_core::Op;
use seekwell_trace::{ErrorKind, ReadOptions, Record, find_format, formats};

fn sample(name: &str) -> Vec<u8> {
    written(find_format(name).unwrap(), &[])
}

fn of_volume(volume: &str) -> ReadOptions {
    ReadOptions {
        volume: Some(volume.to_owned()),
        ..ReadOptions::default()
    }
}

fn with_columns(columns: &str) -> ReadOptions {
    ReadOptions {
        columns: Some(columns.to_owned()),
        ..ReadOptions::default()
    }
}

/// Time in us, operation, sector, length in sectors, process, and time to the completion in us.
type Row = (u64, Op, u64, u32, Option<u32>, Option<u64>);

fn row(r: &Record) -> Row {
    let latency = r.latency_ns().map(|ns| ns / 1000);
    let task = r.task.map(|t| t.0);
    (r.t_ns / 1000, r.op, r.sector.0, r.sectors.0, task, latency)
}

fn rows(bytes: &[u8], options: &ReadOptions) -> (Vec<Row>, Vec<String>) {
    let mut reader = reader(bytes, None, options).unwrap();
    let got = reader.by_ref().map(|r| row(&r.unwrap())).collect();
    (got, reader.warnings())
}

/// The sample of each format is detected as this format only: every other format either does not
/// detect the first bytes, or follows in the list.
#[test]
fn each_sample_is_detected_as_its_own_format_only() {
    let records: Vec<_> = (0..4)
        .map(|i| Record::new(i * 1000, Op::Write, i * 8, 8))
        .collect();
    for f in formats() {
        let bytes = written(f, &records);
        let claims = formats().iter().filter(|o| (o.detect)(&bytes));
        let names: Vec<_> = claims.map(|o| o.name).collect();
        assert_eq!(names, [f.name]);
    }
}

#[test]
fn perf_script_gives_bios_and_completions() {
    let (got, told) = rows(&sample("perf-script"), &ReadOptions::default());
    let want = [
        (0, Op::Read, 1_512_448, 256, Some(20629), Some(101)),
        (5_441, Op::Write, 4096, 8, Some(77), Some(1_001)),
    ];
    assert_eq!(got, want);
    assert_eq!(told, [""; 0]);
    let mut r = reader(&sample("perf-script"), None, &ReadOptions::default()).unwrap();
    assert_eq!(r.by_ref().flatten().count(), 2);
    assert_eq!(r.tasks().unwrap()[&77], "big writer");
}

#[test]
fn trace_cmd_report_is_read_as_ftrace() {
    let text = "cpus=4\n\
        \x20             dd-1234  [001]   100.000001: block_bio_queue:      8,0 R 1000 + 8 [dd]\n\
        \x20             dd-1234  [001]   100.000002: block_rq_issue:       8,0 R 4096 () 1000 + 8 \
        [dd]\n          <idle>-0     [001]   100.000502: block_rq_complete:    8,0 R () 1000 + 8 \
        [0]\nCPU:1 [2 EVENTS DROPPED]\n";
    let (got, told) = rows(text.as_bytes(), &ReadOptions::default());
    assert_eq!(got, [(0, Op::Read, 1000, 8, Some(1234), Some(501))]);
    assert!(told[0].contains("lost events"), "{told:?}");
}

/// Lines of biosnoop are in order of completion. Records are in order of issue.
#[test]
fn biosnoop_requests_begin_at_their_issue() {
    let (got, told) = rows(&sample("biosnoop"), &ReadOptions::default());
    let want = [
        (0, Op::Write, 1_000_000, 128, Some(100), Some(4_000)),
        (4_500, Op::Write, 1_000_128, 8, Some(100), Some(500)),
        (13_200, Op::Read, 2_000_000, 8, Some(200), Some(800)),
    ];
    assert_eq!(got, want);
    let told = told.join("\n");
    assert!(told.contains("1 requests without a disk"), "{told}");
    assert!(
        told.contains("no queue events") && !told.contains("order"),
        "{told}"
    );
}

#[test]
fn slow_requests_of_biosnoop_are_sorted_among_many_fast_ones() {
    let mut text =
        "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)\n".to_owned();
    for i in 0..4000u64 {
        let ms = i + 1;
        text += &format!(
            "{}.{:03}000 a 7 sda R {} 4096 0.10\n",
            ms / 1000,
            ms % 1000,
            i * 8
        );
    }
    text += "4.001000 b 8 sda W 999000 4096 4000.00\n4.002000 b 8 sdb W 8 4096 0.10\n";
    let (got, told) = rows(text.as_bytes(), &of_volume("sda"));
    assert_eq!(got.len(), 4001);
    let slow = got.iter().position(|r| r.1 == Op::Write).unwrap();
    assert_eq!((slow, got[slow].5), (1, Some(4_000_000)));
    assert!(told.iter().all(|t| !t.contains("earlier")), "{told:?}");
    let e = error_of(text.as_bytes(), None, &of_volume("sdc")).to_string();
    assert!(
        e.contains("its devices are (records): sda (4001), sdb (1)"),
        "{e}"
    );
}

#[test]
fn queueing_time_of_biosnoop_begins_the_records() {
    let text = "TIME(s)  COMM  PID  DISK T SECTOR BYTES QUE(ms) LAT(ms)\n\
                0.010000 a 7 sda W 64 4096 2.00 1.00\n0.011000 a 7 sda FF -1 0 0.50 1.00\n";
    let (got, told) = rows(text.as_bytes(), &ReadOptions::default());
    let want = [
        (0, Op::Write, 64, 8, Some(7), Some(3_000)),
        (2_500, Op::Flush, 0, 0, Some(7), Some(1_500)),
    ];
    assert_eq!(got, want);
    assert_eq!(told, [""; 0]);
}

#[test]
fn iosnoop_needs_times() {
    let (got, _) = rows(&sample("iosnoop"), &ReadOptions::default());
    let want = [
        (0, Op::Write, 17_039_600, 8, Some(1809), Some(618)),
        (9, Op::Read, 954_168, 8, Some(1811), Some(16_063)),
        (362, Op::Write, 17_039_608, 16, Some(1810), Some(419)),
    ];
    assert_eq!(got, want);
    for (text, says) in [
        (
            "COMM             PID    TYPE DEV      BLOCK        BYTES     LATms\n\
             a                1      W    8,0      64           4096       0.62\n",
            "iosnoop -ts",
        ),
        (
            "Attached 4 probes\nTIME(ms)     DISK ID        COMM             PID    LAT(ms)\n\
             611          259   0        bash             4179        10\n",
            "prints no sectors and sizes; record with biosnoop of bcc",
        ),
    ] {
        let e = error_of(text.as_bytes(), None, &ReadOptions::default());
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.to_string().contains(says), "{e}");
    }
}

#[test]
fn spc_addresses_are_sectors_and_sizes_bytes() {
    let (got, _) = rows(&sample("spc"), &of_volume("0"));
    let want = [
        (0, Op::Write, 303_567, 7, None, None),
        (26_214, Op::Read, 303_574, 7, None, None),
    ];
    assert_eq!(got, want);
}

#[test]
fn disksim_times_are_milliseconds_and_bit_0_is_read() {
    let (got, _) = rows(&sample("disksim"), &of_volume("30"));
    let want = [
        (0, Op::Read, 0, 5, None, None),
        (12_720, Op::Write, 28_601, 12, None, None),
        (20_308, Op::Read, 28_613, 4, None, None),
    ];
    assert_eq!(got, want);
}

#[test]
fn fiu_times_are_nanoseconds() {
    let (got, told) = rows(&sample("fiu"), &ReadOptions::default());
    let want = [
        (0, Op::Write, 904_265_560, 8, Some(4892), None),
        (1, Op::Write, 904_265_568, 8, Some(4892), None),
        (791_115, Op::Read, 283_193_184, 8, Some(20782), None),
    ];
    assert_eq!(got, want);
    assert_eq!(told, [""; 0]);
}

#[test]
fn objects_of_cache_traces_are_sectors() {
    let (csv, _) = rows(&sample("cachesim-csv"), &ReadOptions::default());
    let want = [
        (0, Op::Write, 42_932_745, 1, None, None),
        (0, Op::Read, 40_409_911, 13, None, None),
        (3_000_000, Op::Write, 31_954_535, 2, None, None),
    ];
    assert_eq!(csv, want);
    let (binary, told) = rows(&sample("oracle-general"), &ReadOptions::default());
    let want = [
        (0, Op::Read, 42_932_745, 1, None, None),
        (0, Op::Read, 40_409_911, 13, None, None),
        (1_000_000, Op::Read, 42_932_745, 2, None, None),
    ];
    assert_eq!(binary, want);
    assert!(told[0].contains("all requests are reads"), "{told:?}");
    let plain = "# time,obj_id,obj_size\n1,8,4096\n2,16,4096\n";
    let (got, _) = rows(plain.as_bytes(), &ReadOptions::default());
    assert_eq!(got[1], (1_000_000, Op::Read, 16, 8, None, None));
    let words = "time, obj_id, obj_size, op\n1,8,4096,write\n";
    assert_eq!(
        rows(words.as_bytes(), &ReadOptions::default()).0[0].1,
        Op::Write
    );
    let mut hashed = sample("oracle-general");
    hashed[11] = 0x7f;
    let e = error_of(&hashed, None, &ReadOptions::default());
    assert!(e.to_string().contains("it is probably a hash"), "{e}");
}

#[test]
fn msr_copies_can_have_a_header() {
    let text = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n\
                128000000000000000,srv,0,Read,1048576,4096,500\n";
    assert_eq!(read(text.as_bytes())[0].latency_ns(), Some(50_000));
}

#[test]
fn any_delimited_text_can_be_read() {
    for (text, columns, want) in [
        (
            "when;what;disk;where;much\n0.5;read;3;4096;8192\n0.75;WRITE;3;81920;4096\n",
            "t_s=1,op=2,offset=4,bytes=5",
            [
                (0, Op::Read, 8, 16, None, None),
                (250_000, Op::Write, 160, 8, None, None),
            ],
        ),
        (
            "4851300 1 8 16 1\n4864300   1\t160 8 0\n",
            "t_ns=1,sector=3,sectors=4,is_read=5",
            [
                (0, Op::Read, 8, 16, None, None),
                (13, Op::Write, 160, 8, None, None),
            ],
        ),
        (
            "1|2|1|250|x|7\n1|1|1|500|y|9\n",
            "page=2, pages=3, lat_us=4, pid=6, op=R",
            [
                (0, Op::Read, 16, 8, Some(7), Some(250)),
                (0, Op::Read, 8, 8, Some(9), Some(500)),
            ],
        ),
    ] {
        assert_eq!(
            rows(text.as_bytes(), &with_columns(columns)).0,
            want,
            "{text}"
        );
    }
    let text = "when,what,where,much\n0,R,1,1\n";
    let (_, told) = rows(text.as_bytes(), &with_columns("t_s=1,op=2,sector=3,n=4"));
    assert!(
        told[0].starts_with("line 1 skipped as a header"),
        "{told:?}"
    );
}

#[test]
fn wrong_columns_are_rejected() {
    for (columns, says) in [
        ("time=1,op=2,sector=3,n=4", "no column is called \"time\""),
        (
            "t_s=1,op=2,sector=3",
            "the column sectors (or n, or bytes) is missing; add it to --columns",
        ),
        ("t_s=1,op=2,sector=2,n=4", "the field 2 has two names"),
        (
            "t_s=0,op=2,sector=3,n=4",
            "\"t_s=0\" in --columns does not give a field number",
        ),
        ("op=2,is_read=3,sector=4,n=1", "same content"),
        ("", "does not give a field number"),
        ("t_s=1,op=2,sector=3,n=9", "line 2: cannot read"),
    ] {
        let e = error_of(b"0,R,8,8\n1,R,8,8\n", None, &with_columns(columns));
        assert!(e.to_string().contains(says), "{columns}: {e}");
    }
    let e = error_of(b"x", find_format("msr").ok(), &with_columns("op=1"));
    assert!(e.to_string().contains("has its own columns"), "{e}");
}

#[test]
fn unknown_text_gets_a_command() {
    let text =
        "start op dev from len\n0.5 read 3 4096 8192\n0.7 write 3 81920 4096\n0.9 read 3 0 512\n";
    let e = error_of(text.as_bytes(), None, &ReadOptions::default()).to_string();
    let command = "seekwell report mem --columns t_s=1,op=2,offset=4,bytes=5";
    assert!(e.contains(command), "{e}");
}
