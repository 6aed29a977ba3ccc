//! For every format, the reader must return all information that was written and that the format
//! can express.

use crate::common::{Shared, gzip, read, reader, swapped, written, zstd};
use proptest::prelude::*;
use seekwell_core::{CgroupId, Flags, IoPrio, Op, Sector, Sectors, TaskId};
use seekwell_trace::{
    Format, ReadOptions, Record, Stream, WriteOptions, device_number, find_format, formats,
};

const OPS: [Op; 5] = [Op::Read, Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes];

/// Makes records in order of time. Their ranges do not overlap, so that each completion belongs to
/// one record. Flushes take a constant time, so that they complete in order.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let one = (
        0u64..3_000_000,
        0usize..5,
        any::<u16>(),
        1u32..2000,
        1u32..5,
        any::<u16>(),
        0u64..50_000,
        0u64..50_000,
        prop::option::of(0u64..20_000_000),
        0u16..3,
    );
    prop::collection::vec(one, 1..60).prop_map(|all| {
        let mut t = 0;
        let mut out = Vec::new();
        for (i, (dt, op, flags, n, task, cpu, ins, iss, done, error)) in all.into_iter().enumerate()
        {
            t += if i == 0 { 0 } else { dt };
            let op = OPS[op];
            let flush = op == Op::Flush;
            let insert = if flush { t + 1000 } else { t + ins };
            let issue = if flush { t + 2000 } else { insert + iss };
            let done = match (flush, done) {
                (true, _) => Some(t + 5_000_000),
                (false, Some(d)) => Some(issue + d),
                (false, None) => None,
            };
            out.push(Record {
                flags: Flags::from_bits_truncate(flags),
                task: Some(TaskId(task)),
                cpu: Some(cpu),
                ioprio: IoPrio::from_numbers(u64::from(n % 4), u64::from(n % 8)),
                cgroup: CgroupId(n % 3),
                device: device_number(8, 16 * (task % 2)),
                insert_ns: Some(insert),
                issue_ns: Some(issue),
                complete_ns: done,
                error: if done.is_some() && !flush { error } else { 0 },
                sector: Sector(if flush { 0 } else { i as u64 * 2000 }),
                sectors: Sectors(if flush { 0 } else { n }),
                ..Record::new(t, op, 0, 0)
            });
        }
        out
    })
}

/// Returns the record as far as blktrace and blkparse can express it.
fn as_block_trace(r: &Record, flags: Flags) -> Record {
    let (op, mut kept) = match r.op {
        Op::WriteZeroes => (Op::Write, r.flags & flags),
        op => (op, r.flags & flags),
    };
    if op == Op::Flush {
        kept -= Flags::PREFLUSH;
    }
    Record {
        op,
        flags: kept,
        ioprio: None,
        cgroup: CgroupId::ROOT,
        ..*r
    }
}

const BINARY_FLAGS: Flags = Flags::SYNC
    .union(Flags::META)
    .union(Flags::RAHEAD)
    .union(Flags::PREFLUSH)
    .union(Flags::FUA);

fn format(name: &str) -> Format {
    find_format(name).unwrap()
}

/// Returns a record with position and operation only. Its time is rounded down to `unit_ns`.
fn bare(r: &Record, op: Op, unit_ns: u64) -> Record {
    Record::new(r.t_ns / unit_ns * unit_ns, op, r.sector.0, r.sectors.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn csv_survives_a_round_trip(records in records()) {
        prop_assert_eq!(read(&written(format("csv"), &records)), records);
    }

    #[test]
    fn parquet_survives_a_round_trip(records in records()) {
        prop_assert_eq!(read(&written(format("parquet"), &records)), records);
    }

    #[test]
    fn blktrace_survives_a_round_trip_in_both_byte_orders(records in records()) {
        let want: Vec<_> = records.iter().map(|r| as_block_trace(r, BINARY_FLAGS)).collect();
        let bytes = written(format("blktrace"), &records);
        prop_assert_eq!(&read(&bytes), &want);
        prop_assert_eq!(read(&swapped(&bytes)), want);
    }

    #[test]
    fn blkparse_survives_a_round_trip(records in records()) {
        let flags = BINARY_FLAGS | Flags::BARRIER;
        let want: Vec<_> = records.iter().map(|r| as_block_trace(r, flags)).collect();
        prop_assert_eq!(read(&written(format("blkparse"), &records)), want);
    }

    #[test]
    fn vscsi_survives_a_round_trip(records in records()) {
        let want: Vec<_> = records.iter().map(|r| bare(r, r.op, 1000)).collect();
        prop_assert_eq!(read(&written(format("vscsi"), &records)), want);
    }

    #[test]
    fn iolog_v3_survives_a_round_trip(records in records()) {
        let op = |op| if op == Op::WriteZeroes { Op::Write } else { op };
        let want: Vec<_> = records.iter().map(|r| bare(r, op(r.op), 1000)).collect();
        prop_assert_eq!(read(&written(format("fio-iolog-v3"), &records)), want);
    }

    #[test]
    fn iolog_v2_round_trip_error_stays_below_101_us(records in records()) {
        let back = read(&written(format("fio-iolog-v2"), &records));
        prop_assert_eq!(back.len(), records.len());
        for (b, r) in back.iter().zip(&records) {
            prop_assert!(b.t_ns <= r.t_ns && r.t_ns - b.t_ns < 101_000, "{} {}", b.t_ns, r.t_ns);
            prop_assert_eq!((b.sector, b.sectors), (r.sector, r.sectors));
        }
    }

    #[test]
    fn compression_and_detection_do_not_change_records(records in records()) {
        for f in formats() {
            let plain = written(f, &records);
            let want = read(&plain);
            for packed in [zstd(&plain), gzip(&plain), [gzip(&plain[..7]), gzip(&plain[7..])].concat()] {
                let r = reader(&packed, None, &ReadOptions::default()).unwrap();
                prop_assert_eq!(r.format().name, f.name);
                prop_assert_eq!(&r.collect::<Result<Vec<_>, _>>().unwrap(), &want);
            }
        }
    }

    /// A trace of issue events has the same requests, in the order of issue.
    #[test]
    fn issue_stream_has_the_same_requests_in_issue_order(records in records()) {
        let options = ReadOptions { stream: Stream::Issue, ..ReadOptions::default() };
        let bytes = written(format("blktrace"), &records);
        let got: Vec<_> = reader(&bytes, None, &options).unwrap().collect::<Result<_, _>>().unwrap();
        let mut want = records.clone();
        want.sort_by_key(|r| r.issue_ns);
        let first = want[0].issue_ns.unwrap();
        let key = |r: &Record| (r.sector, r.sectors, r.device);
        prop_assert_eq!(got.iter().map(key).collect::<Vec<_>>(), want.iter().map(key).collect::<Vec<_>>());
        for (g, w) in got.iter().zip(&want) {
            prop_assert_eq!(g.t_ns, w.issue_ns.unwrap() - first);
            prop_assert_eq!(g.complete_ns, w.complete_ns.map(|c| c - first));
        }
    }
}

#[test]
fn one_of_several_devices_is_selected() {
    let mut all = Vec::new();
    for i in 0..10u64 {
        let device = device_number(8, 16 * (i as u32 % 2));
        all.push(Record {
            device,
            task: Some(TaskId(1)),
            cpu: Some(0),
            ..Record::new(i, Op::Read, i * 8, 8)
        });
    }
    for name in ["blktrace", "blkparse", "csv", "parquet"] {
        let options = ReadOptions {
            device: Some(device_number(8, 16)),
            ..ReadOptions::default()
        };
        let bytes = written(format(name), &all);
        let got: Vec<_> = reader(&bytes, None, &options).unwrap().flatten().collect();
        assert_eq!(got.len(), 5, "{name}");
        assert!(got.iter().all(|r| r.device == device_number(8, 16)));
    }
}

#[test]
fn process_names_survive_a_round_trip() {
    let r = Record {
        task: Some(TaskId(7)),
        ..Record::new(0, Op::Read, 0, 8)
    };
    for name in ["blktrace", "blkparse", "parquet"] {
        let out = Shared::default();
        let mut options = WriteOptions::default();
        options.tasks.insert(7, "postgres".to_string());
        let create = format(name).create.unwrap();
        let mut w = create(Box::new(out.clone()), &options).unwrap();
        w.write(&r).unwrap();
        w.finish().unwrap();
        let mut back = reader(&out.bytes(), None, &ReadOptions::default()).unwrap();
        assert_eq!(back.by_ref().count(), 1);
        assert_eq!(back.tasks().unwrap()[&7], "postgres", "{name}");
    }
}

#[test]
fn files_are_compressed_according_to_their_name() {
    let folder = crate::common::Folder::new();
    let records: Vec<_> = (0..1000)
        .map(|i| Record::new(i * 1000, Op::Read, i * 8, 8))
        .collect();
    for ending in ["", ".zst", ".gz"] {
        let path = folder.0.join(format!("t.vscsi{ending}"));
        let mut w =
            seekwell_trace::create(&path, format("vscsi"), &WriteOptions::default()).unwrap();
        for r in &records {
            w.write(r).unwrap();
        }
        w.finish().unwrap();
        let r = seekwell_trace::open(&path, None, &ReadOptions::default()).unwrap();
        assert_eq!(r.collect::<Result<Vec<_>, _>>().unwrap(), records);
        let len = std::fs::metadata(&path).unwrap().len();
        assert_eq!(len == 32_000, ending.is_empty(), "{ending}: {len} bytes");
    }
}
