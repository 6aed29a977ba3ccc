//! Files of block events: Seekwell's own events written and read back, one file per CPU, other
//! versions, odd lengths, and the order of events.

use crate::common::{Folder, Shared, error_of, read, reader, swapped, written};
use crate::events::{text, times};
use seekwell_core::{Action, Event, Flags, Instant, More, Op, Rule, Sector, Sectors, TaskId};
use seekwell_trace::join::NOTE_SORTED;
use seekwell_trace::reader::NOTE_BACKWARDS;
use seekwell_trace::{
    BlkparseWriter, BlktraceWriter, ErrorKind, EventWriter, Limits, ReadOptions, Record,
    WriteOptions, Writer, find_format, open,
};

const EXPIRED: &Rule = &Rule {
    id: "head-expired",
    kernel: "deadline_check_fifo",
    says: "The oldest goes.",
};

fn event(us: u64, action: Action, sector: u64, n: u32) -> Event {
    let more = match action {
        Action::Timer => More::Timer {
            slot: "idle_slice_timer",
            until: Instant::at_us(us),
        },
        _ => More::None,
    };
    Event {
        task: Some(TaskId(42)),
        op: Op::Write,
        flags: Flags::SYNC,
        sector: Sector(sector),
        sectors: Sectors(n),
        rule: Some(EXPIRED),
        more,
        detail: "its time is over".to_owned(),
        ..Event::new(Instant::at_us(us), action)
    }
}

/// All events of two bios in one request.
fn events_of_a_request() -> Vec<Event> {
    use Action::*;
    let all = [
        (0, Queue, 100, 8),
        (1, GetRq, 100, 8),
        (1, Plug, 0, 0),
        (2, Queue, 108, 8),
        (2, BackMerge, 108, 8),
        (3, Unplug, 0, 1),
        (3, Insert, 100, 16),
        (4, Why, 100, 16),
        (4, Elevator, 100, 16),
        (5, Issue, 100, 16),
        (6, Requeue, 100, 16),
        (7, Issue, 100, 16),
        (8, Timer, 0, 0),
        (9, Complete, 100, 16),
    ];
    all.map(|(us, a, s, n)| event(us, a, s, n)).to_vec()
}

fn events_written<W: Writer + EventWriter>(
    make: impl Fn(Box<Shared>, &WriteOptions) -> W,
) -> Vec<u8> {
    let out = Shared::default();
    let mut w = make(Box::new(out.clone()), &WriteOptions::default());
    for e in events_of_a_request() {
        w.event(&e).unwrap();
    }
    w.finish().unwrap();
    out.bytes()
}

#[test]
fn written_events_are_read_back_as_records() {
    let text = events_written(|out, o| BlkparseWriter::new(out, o));
    let binary = events_written(|out, o| BlktraceWriter::new(out, o));
    for bytes in [&text, &binary] {
        let got = read(bytes);
        assert_eq!(got.len(), 2);
        assert_eq!(times(&got[0]), [Some(3), Some(7), Some(9)]);
        assert_eq!(times(&got[1]), [Some(3), Some(7), Some(9)]);
        assert_eq!(got[1].task, Some(TaskId(42)));
    }
    assert_eq!(read(&text), read(&binary));
}

#[test]
fn written_text_has_the_format_of_blkparse() {
    let text = String::from_utf8(events_written(|out, o| BlkparseWriter::new(out, o))).unwrap();
    let want = "  8,0    0        1     0.000000000    42  Q  WS 100 + 8 [task42]
  8,0    0        2     0.000001000    42  G  WS 100 + 8 [task42]
  8,0    0        3     0.000001000    42  P   N [task42]
  8,0    0        4     0.000002000    42  Q  WS 108 + 8 [task42]
  8,0    0        5     0.000002000    42  M  WS 108 + 8 [task42]
  8,0    0        6     0.000003000    42  U   N [task42] 1
  8,0    0        7     0.000003000    42  I  WS 100 + 16 [task42]
  8,0    0        8     0.000004000    42  m   N head-expired its time is over
  8,0    0        9     0.000004000    42  m   N dispatch WS 100 + 16
  8,0    0       10     0.000005000    42  D  WS 100 + 16 [task42]
  8,0    0       11     0.000006000    42  R  WS 100 + 16 [0]
  8,0    0       12     0.000007000    42  D  WS 100 + 16 [task42]
  8,0    0       13     0.000008000    42  m   N fires idle_slice_timer
  8,0    0       14     0.000009000    42  C  WS 100 + 16 [0]
";
    assert_eq!(text, want);
}

/// Splits a merged trace by CPU, into the files that blktrace writes.
fn by_cpu(merged: &[u8], cpus: u32) -> Vec<Vec<u8>> {
    let mut out = vec![Vec::new(); cpus as usize];
    let mut at = 0;
    while at < merged.len() {
        let b = &merged[at..];
        let len = 48 + usize::from(u16::from_le_bytes([b[46], b[47]]));
        let cpu = u32::from_le_bytes([b[40], b[41], b[42], b[43]]);
        out[cpu as usize].extend_from_slice(&b[..len]);
        at += len;
    }
    out
}

#[test]
fn files_of_all_cpus_are_merged_by_time() {
    let records: Vec<_> = (0..500u64)
        .map(|i| Record {
            task: Some(TaskId(1 + i as u32 % 3)),
            cpu: Some([0, 1, 3][(i * i % 3) as usize]),
            device: 8 << 20,
            issue_ns: Some(i * 10 + 3),
            complete_ns: Some(i * 10 + 1234),
            ..Record::new(i * 10, Op::Read, i * 8, 8)
        })
        .collect();
    let merged = written(find_format("blktrace").unwrap(), &records);
    let folder = Folder::new();
    let mut files = by_cpu(&merged, 4);
    assert!(files[2].is_empty(), "CPU 2 had nothing to do");
    files[1] = swapped(&files[1]);
    files[3] = crate::common::zstd(&files[3]);
    for (cpu, bytes) in files.iter().enumerate() {
        let zst = if cpu == 3 { ".zst" } else { "" };
        folder.file(&format!("sdb.blktrace.{cpu}{zst}"), bytes);
    }
    folder.file("sdc.blktrace.0", &merged);
    for name in ["sdb.blktrace.0", "sdb"] {
        let r = open(folder.0.join(name), None, &ReadOptions::default()).unwrap();
        let got: Vec<_> = r.collect::<Result<_, _>>().unwrap();
        assert_eq!(got, records, "{name}");
    }
    // A file of another CPU is opened alone.
    let alone = open(
        folder.0.join("sdb.blktrace.1"),
        None,
        &ReadOptions::default(),
    )
    .unwrap();
    assert!(alone.flatten().all(|r| r.cpu == Some(1)));
    let e = open(folder.0.join("sdd"), None, &ReadOptions::default())
        .err()
        .unwrap();
    assert_eq!(e.kind(), ErrorKind::Io);
}

#[test]
fn other_versions_and_lost_bytes_are_rejected() {
    let records: Vec<_> = (0..10)
        .map(|i| Record::new(i, Op::Read, i * 8, 8))
        .collect();
    let bytes = written(find_format("blktrace").unwrap(), &records);
    let mut other = bytes.clone();
    other[0] = 8;
    let e = error_of(&other, None, &ReadOptions::default());
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.to_string().contains("version 8; only 7"), "{e}");
    let lost = [&bytes[..96], &bytes[97..]].concat();
    let e = error_of(&lost, None, &ReadOptions::default());
    assert_eq!(e.to_string().matches("record 3").count(), 1, "{e}");
    assert_eq!(e.kind(), ErrorKind::Broken);
}

/// The bytes of an event need not be whole sectors. The category bits of an event without bytes
/// determine what it is: a flush, which has no place, or an event that is irrelevant for records.
#[test]
fn events_with_partial_sectors_or_no_bytes_are_read() {
    let records: Vec<_> = (0..7)
        .map(|i| Record {
            task: Some(TaskId(1)),
            device: 8 << 20,
            ..Record::new(i, Op::Read, i * 64, 8)
        })
        .collect();
    let bytes = written(find_format("blktrace").unwrap(), &records);
    let mut changed = Vec::new();
    let (mut at, mut i) = (0, 0);
    // (bytes, kinds: FLUSH is bit 18, WRITE bit 17, READ bit 16) of the events in their order.
    let change: [(u32, u32); 7] = [
        (4097, 1 << 16),
        (511, 1 << 16),
        (1, 1 << 17),
        (0, 1 << 16),
        (0, 1 << 18),
        (0, 1 << 17),
        (512, 1 << 16),
    ];
    while at < bytes.len() {
        let mut event = bytes[at..].to_vec();
        event.truncate(48 + usize::from(u16::from_le_bytes([event[46], event[47]])));
        at += event.len();
        let mut action = u32::from_le_bytes([event[28], event[29], event[30], event[31]]);
        // The other events are process names.
        if action & 0xffff == 1 {
            let (length, kinds) = change[i];
            i += 1;
            action = action & !(7 << 16) | kinds;
            event[24..28].copy_from_slice(&length.to_le_bytes());
            event[28..32].copy_from_slice(&action.to_le_bytes());
        }
        changed.extend(event);
    }
    assert_eq!(i, change.len());
    let got: Vec<_> = read(&changed);
    let got = got.iter().map(|r| (r.op, r.sector.0, r.sectors.0));
    let want = [
        (Op::Read, 0, 9),
        (Op::Read, 64, 1),
        (Op::Write, 128, 1),
        (Op::Flush, 0, 0),
        (Op::Read, 384, 1),
    ];
    assert_eq!(got.collect::<Vec<_>>(), want);
}

#[test]
fn slightly_unordered_events_are_sorted() {
    let records: Vec<_> = (0..500u64)
        .map(|i| Record {
            task: Some(TaskId(1)),
            cpu: Some(0),
            device: 8 << 20,
            issue_ns: Some(i * 100 + 70),
            complete_ns: Some(i * 100 + 130),
            ..Record::new(i * 100, Op::Read, i * 8, 8)
        })
        .collect();
    let sorted = written(find_format("blkparse").unwrap(), &records);
    let mut lines: Vec<_> = sorted.split_inclusive(|&c| c == b'\n').collect();
    // Blocks of 40 lines in reverse order: completions come before their submissions. The first
    // line stays, because it defines the start of time.
    lines[1..].chunks_mut(40).for_each(<[_]>::reverse);
    let mut r = reader(&lines.concat(), None, &ReadOptions::default()).unwrap();
    assert_eq!(r.by_ref().collect::<Result<Vec<_>, _>>().unwrap(), records);
    assert!(r.counted(NOTE_SORTED) > 500);
    assert_eq!(r.counted(NOTE_BACKWARDS), 0);
    // Beyond the window, times are raised, with a warning.
    let options = ReadOptions {
        limits: Limits {
            reorder_max: 3,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let mut r = reader(&lines.concat(), None, &options).unwrap();
    let got: Vec<_> = r.by_ref().flatten().collect();
    assert_eq!(got.len(), 500);
    assert!(got.is_sorted_by_key(|r| r.t_ns));
    assert!(r.counted(NOTE_BACKWARDS) > 100);
}

/// At equal times the order of the file counts, even for late events.
#[test]
fn sorted_events_with_equal_times_keep_their_order() {
    let got = read(&text(
        "0 Q R 0 + 8 [a]
         9 Q R 8 + 8 [a]
         5 Q R 16 + 8 [a]
         5 D R 16 + 8 [a]
         5 C R 16 + 8 [0]",
    ));
    assert_eq!(got[1].sector, Sector(16));
    assert_eq!(times(&got[1]), [None, Some(5), Some(5)]);
}
