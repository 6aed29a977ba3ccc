//! Tests all forms of CSV, the losses of conversions, and the merging of several traces.

use crate::common::{error_of, read, reader, written};
use proptest::prelude::*;
use seekwell_core::{CgroupId, Flags, IoPrio, Op, Sector, Sectors, TaskId};
use seekwell_trace::reader::NOTE_NO_DATA;
use seekwell_trace::{
    Keeps, Losses, Merge, ReadOptions, Record, device_number, find_format, format_of_name, formats,
};

fn plain(t_ns: u64, op: Op, sector: u64, n: u32) -> Record {
    Record::new(t_ns, op, sector, n)
}

#[test]
fn every_csv_dialect_gives_the_same_records() {
    let want = [
        plain(0, Op::Read, 8, 16),
        plain(1_500_000, Op::Write, 80, 8),
    ];
    for text in [
        "t_ns,op,sector,sectors\n0,R,8,16\n1500000,W,80,8\n",
        "t_us,op,sector,n\n0,R,8,16\n1500,W,80,8\n",
        "t_ms,op,offset,bytes\n0,read,4096,8192\n1.5,write,40960,4096\n",
        "op,bytes,sector,t_s\nREAD,8192,8,0\nWrite,4096,80,0.0015\n",
        "# a comment\nt_us, op, offset, n\r\n0, r, 4096, 16\r\n1500.0, w, 40960, 8\r\n",
    ] {
        assert_eq!(read(text.as_bytes()), want, "{text}");
    }
    // The request list of `explain` can have a header or not. The ids are for users only.
    let with_pids = want.map(|r| Record {
        task: Some(TaskId(7)),
        ..r
    });
    for text in [
        "t_us,id,pid,op,sector,n\n0,1,7,R,8,16\n1500,2,7,W,80,8\n",
        "0,1,7,R,8,16\n1500,2,7,W,80,8\n",
    ] {
        assert_eq!(read(text.as_bytes()), with_pids, "{text}");
    }
}

#[test]
fn operation_letters_set_their_flags() {
    let text = "t_us,op,sector,n\n0,S,0,8\n1,N,8,8\n2,P,16,8\n3,M,24,8\n4,A,32,8\n5,F,0,0\n6,D,0,8\n\
                7,Z,0,8\n8,trim,0,8\n9,sync,0,0\n";
    let got: Vec<_> = read(text.as_bytes())
        .iter()
        .map(|r| (r.op, r.flags))
        .collect();
    let none = Flags::empty();
    assert_eq!(
        got,
        [
            (Op::Write, Flags::SYNC),
            (Op::Write, Flags::SYNC | Flags::NOIDLE),
            (Op::Read, Flags::META | Flags::PRIO),
            (Op::Read, Flags::META),
            (Op::Read, Flags::RAHEAD),
            (Op::Flush, none),
            (Op::Discard, none),
            (Op::WriteZeroes, none),
            (Op::Discard, none),
            (Op::Flush, none),
        ]
    );
}

#[test]
fn unaligned_byte_ranges_are_widened_to_sectors_and_reported() {
    let mut r = reader(
        b"t_us,op,offset,bytes\n0,R,100,1000\n1,R,0,0\n2,R,512,1\n",
        None,
        &ReadOptions::default(),
    )
    .unwrap();
    let got: Vec<_> = r.by_ref().map(Result::unwrap).collect();
    let at: Vec<_> = got.iter().map(|r| (r.sector.0, r.sectors.0)).collect();
    assert_eq!(at, [(0, 3), (1, 1)]);
    assert_eq!(
        r.counted(NOTE_NO_DATA),
        1,
        "of length zero: skipped and counted"
    );
    assert!(
        r.warnings()
            .iter()
            .any(|w| w.contains("2 ranges not aligned")),
        "{:?}",
        r.warnings()
    );
}

#[test]
fn control_rows_are_skipped_and_counted() {
    let text = "0,1,7,R,0,8\n5,x,7\n9,t,fifo_batch,1\n10,2,7,R,8,8\n";
    let mut r = reader(text.as_bytes(), None, &ReadOptions::default()).unwrap();
    assert_eq!(r.by_ref().map(Result::unwrap).count(), 2);
    assert!(
        r.warnings().iter().any(|w| w.contains("2 control rows")),
        "{:?}",
        r.warnings()
    );
}

#[test]
fn invalid_headers_are_rejected_with_a_suggestion() {
    let csv = find_format("csv").ok();
    for (text, says) in [
        (
            "t_ns,op,sectr,sectors\n",
            "no column is called \"sectr\"; did you mean `sector`",
        ),
        (
            "t_ns,op,sectors\n",
            "the column sector (or offset) is missing",
        ),
        (
            "t_ns,t_us,op,sector,n\n",
            "the column t_us has the same content as another column",
        ),
        (
            "t_ns,op,sector,n,bytes\n",
            "the column bytes has the same content",
        ),
    ] {
        let e = error_of(text.as_bytes(), csv, &ReadOptions::default());
        assert!(e.to_string().contains(says), "{e}");
    }
    // Fractions of a sector, signs and exponents are rejected.
    for row in ["1e3,R,0,8", "-1,R,0,8", "0,R,0.5,8", "0,R,0,8,9", "0,,0,8"] {
        let text = format!("t_us,op,sector,n\n0,R,0,8\n{row}\n");
        let e = error_of(text.as_bytes(), None, &ReadOptions::default());
        assert!(e.to_string().contains("line 3: cannot read"), "{e}");
    }
}

#[test]
fn format_is_recognised_by_file_name() {
    let of = |name: &str| format_of_name(name.as_ref()).map(|f| f.name);
    assert_eq!(of("a/b.csv"), Some("csv"));
    assert_eq!(of("b.csv.zst"), Some("csv"));
    assert_eq!(of("b.iolog.gz"), Some("fio-iolog-v3"));
    assert_eq!(of("b.blktrace.0"), Some("blktrace"));
    assert_eq!(of("b.vscsi"), Some("vscsi"));
    assert_eq!(of("b.blkparse"), Some("blkparse"));
    for none in ["b.ftrace", "b", "csv", "b.zst"] {
        assert_eq!(of(none), None, "{none}");
    }
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let ops = [Op::Read, Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes];
    let one = (
        0u64..3_000_000,
        0usize..5,
        any::<u16>(),
        1u32..2000,
        1u32..5,
        0u64..50_000,
    );
    prop::collection::vec(one, 1..40).prop_map(move |all| {
        let mut t = 0;
        let record =
            |(i, (dt, op, flags, n, task, wait)): (usize, (u64, usize, u16, u32, u32, u64))| {
                t += if i == 0 { 0 } else { dt };
                let (op, flush) = (ops[op], ops[op] == Op::Flush);
                Record {
                    flags: Flags::from_bits_truncate(flags) - Flags::PREFLUSH,
                    task: Some(TaskId(task)),
                    cpu: Some(flags % 64),
                    ioprio: IoPrio::from_numbers(u64::from(n % 4), u64::from(n % 8)),
                    cgroup: CgroupId(n % 3),
                    device: device_number(8, 16 * (task % 2)),
                    insert_ns: Some(t + 1000),
                    issue_ns: Some(t + 2000),
                    complete_ns: Some(t + 4000 + if flush { 0 } else { wait }),
                    sector: Sector(if flush { 0 } else { i as u64 * 2000 }),
                    sectors: Sectors(if flush { 0 } else { n }),
                    ..Record::new(t, op, 0, 0)
                }
            };
        all.into_iter().enumerate().map(record).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A format keeps the parts that it declares, and the other parts are reported as lost.
    #[test]
    fn reported_losses_are_the_actual_ones(records in records()) {
        for f in formats().iter().filter(|f| f.create.is_some()) {
            let back = read(&written(f, &records));
            prop_assert_eq!(back.len(), records.len());
            let mut losses = Losses::new(f);
            for (b, r) in back.iter().zip(&records) {
                losses.see(r);
                let mut kept = f.keeps.kept(r);
                if f.name == "fio-iolog-v2" {
                    // Waits below 100 us are accumulated, so the error of a time stays below this
                    // value.
                    prop_assert!(b.t_ns.abs_diff(r.t_ns) < 101_000);
                    kept.t_ns = b.t_ns;
                }
                prop_assert_eq!(*b, kept, "{}", f.name);
            }
            let told = losses.line(f, false);
            let same = back == records;
            prop_assert_eq!(told.is_none(), same, "{}: {:?}", f.name, told);
        }
    }
}

#[test]
fn losses_are_reported_with_their_count() {
    let r = Record {
        task: Some(TaskId(1)),
        complete_ns: Some(5000),
        flags: Flags::SYNC,
        ..plain(1000, Op::Write, 0, 8)
    };
    let iolog = find_format("fio-iolog-v3").unwrap();
    let mut l = Losses::new(iolog);
    l.see(&r);
    l.see(&r);
    let csv = find_format("csv").unwrap();
    let line = l.line(csv, true).unwrap();
    let words =
        "csv -> fio-iolog-v3 drops completions (2), flags (2), pids (2), names of processes";
    assert_eq!(line, words);
    let mut none = Losses::new(csv);
    none.see(&r);
    assert_eq!(none.line(iolog, false), None);
    assert_eq!(Keeps::ALL.kept(&r), r);
}

#[test]
fn merged_traces_keep_their_own_clocks() {
    let a = "100.0,0.001,R,1,0,512\n101.5,0.001,R,1,512,512\n";
    let b = "101.0,0.001,W,2,0,512\n103.0,0.001,W,2,512,512\n";
    let open = |text: &str| {
        let systor = find_format("systor").ok();
        reader(text.as_bytes(), systor, &ReadOptions::default()).unwrap()
    };
    // The order of the names does not matter.
    for readers in [vec![open(a), open(b)], vec![open(b), open(a)]] {
        let got: Vec<_> = Merge::new(readers).unwrap().map(|r| r.unwrap()).collect();
        let at: Vec<_> = got.iter().map(|r| (r.t_ns / 1_000_000, r.device)).collect();
        assert_eq!(at, [(0, 1), (1000, 2), (1500, 1), (3000, 2)]);
        assert!(got.iter().all(|r| r.latency_ns() == Some(1_000_000)));
    }
    assert_eq!(Merge::new(Vec::new()).unwrap().count(), 0);
}
