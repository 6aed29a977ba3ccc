//! Block traces of real kernels: merges, splits, partial completions, flush sequences, requeues;
//! and our own event stream written and read.

use crate::common::{Folder, Shared, error_of, read, reader, swapped, written};
use seekwell_core::{Action, Event, Flags, Instant, More, Op, Rule, Sector, Sectors, TaskId};
use seekwell_trace::join::{
    NOTE_ISSUE_STREAM, NOTE_LATE_QUEUE, NOTE_ORPHAN, NOTE_SORTED, NOTE_UNFINISHED,
};
use seekwell_trace::reader::NOTE_BACKWARDS;
use seekwell_trace::{
    BlkparseWriter, BlktraceWriter, ErrorKind, EventWriter, Limits, ReadOptions, Record, Stream,
    WriteOptions, Writer, find_format, open,
};

/// Lines of `us ACTION RWBS rest` as blkparse text of one device.
fn text(lines: &str) -> Vec<u8> {
    let mut out = String::new();
    for (i, line) in lines
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .enumerate()
    {
        let (us, rest) = line.split_once(' ').unwrap();
        let us: u64 = us.parse().unwrap();
        let (s, ns) = (us / 1_000_000, us % 1_000_000 * 1000);
        out += &format!(
            "  8,0    1 {:8} {s:5}.{ns:09}   697 {rest}
",
            i + 1
        );
    }
    out.into_bytes()
}

fn times(r: &Record) -> [Option<u64>; 3] {
    [r.insert_ns, r.issue_ns, r.complete_ns].map(|t| t.map(|t| t / 1000))
}

#[test]
fn merged_bios_complete_with_their_request() {
    let got = read(&text(
        "0 Q WS 100 + 8 [fio]
         1 G WS 100 + 8 [fio]
         2 P N [fio]
         3 Q WS 108 + 8 [fio]
         4 M WS 108 + 8 [fio]
         5 Q WS 92 + 8 [fio]
         6 F WS 92 + 8 [fio]
         7 U N [fio] 1
         8 I WS 92 + 24 [fio]
         9 D WS 92 + 24 [fio]
         20 C WS 92 + 24 [0]",
    ));
    assert_eq!(
        got.iter().map(|r| r.sector.0).collect::<Vec<_>>(),
        [100, 108, 92]
    );
    for r in &got {
        assert_eq!(times(r), [Some(8), Some(9), Some(20)]);
    }
    // Merged on the plug list, so all entered with the request. A later one entered by merging.
    assert!(got.iter().all(|r| r.insert_ns == Some(8_000)));
    let late = read(&text(
        "0 Q R 100 + 8 [fio]
         1 I R 100 + 8 [fio]
         2 Q R 108 + 8 [fio]
         3 M R 108 + 8 [fio]
         4 D R 100 + 16 [fio]",
    ));
    let inserted: Vec<_> = late.iter().map(|r| r.insert_ns).collect();
    assert_eq!(inserted, [Some(1_000), Some(3_000)]);
}

#[test]
fn a_split_bio_is_done_when_its_last_part_is() {
    let got = read(&text(
        "0 Q R 100 + 64 [fio]
         1 X R 100 / 132 [fio]
         2 I R 100 + 32 [fio]
         3 I R 132 + 32 [fio]
         4 D R 100 + 32 [fio]
         5 D R 132 + 32 [fio]
         10 C R 132 + 32 [0]
         30 C R 100 + 32 [0]",
    ));
    assert_eq!(got.len(), 1);
    assert_eq!(times(&got[0]), [Some(2), Some(4), Some(30)]);
}

#[test]
fn a_request_may_complete_in_parts() {
    let got = read(&text(
        "0 Q R 100 + 16 [fio]
         1 Q R 116 + 16 [fio]
         2 D R 100 + 32 [fio]
         10 C R 100 + 20 [0]
         20 C R 120 + 12 [5]",
    ));
    assert_eq!(got[0].complete_ns, Some(10_000));
    assert_eq!((got[1].complete_ns, got[1].error), (Some(20_000), 5));
}

#[test]
fn of_two_at_one_place_the_older_completes_first() {
    let got = read(&text(
        "0 Q W 100 + 8 [a]
         1 Q W 100 + 8 [a]
         2 Q R 100 + 8 [a]
         3 D W 100 + 8 [a]
         4 D W 100 + 8 [a]
         5 D R 100 + 8 [a]
         6 C R 100 + 8 [0]
         7 C W 100 + 8 [0]
         8 C W 100 + 8 [0]",
    ));
    let t: Vec<_> = got
        .iter()
        .map(times)
        .map(|t| (t[1].unwrap(), t[2].unwrap()))
        .collect();
    assert_eq!(t, [(3, 7), (4, 8), (5, 6)]);
}

#[test]
fn the_flush_machinery_does_not_end_the_submitters_flush() {
    let got = read(&text(
        "0 Q FWS [jbd2]
         1 I FWS [jbd2]
         2 D FN [kworker]
         10 C FN 0 [0]
         11 C FWS 0 [0]
         20 Q FWFSM 800 + 8 [jbd2]
         21 D FN [kworker]
         30 C FN 0 [0]
         31 D WFSM 800 + 8 [jbd2]
         40 C WFSM 800 + 8 [0]",
    ));
    assert_eq!((got[0].op, got[0].flags), (Op::Flush, Flags::SYNC));
    assert_eq!(got[0].complete_ns, Some(11_000));
    let all = Flags::PREFLUSH | Flags::FUA | Flags::SYNC | Flags::META;
    assert_eq!((got[1].op, got[1].flags), (Op::Write, all));
    assert_eq!(got[1].complete_ns, Some(40_000));
    // An old kernel has only FN, which is used instead.
    let old = read(&text("0 Q FWS [jbd2]\n 10 C FN 0 [0]"));
    assert_eq!(old[0].complete_ns, Some(10_000));
}

#[test]
fn a_requeued_request_was_issued_the_last_time() {
    let lines = "0 Q R 100 + 8 [a]
         1 D R 100 + 8 [a]
         2 R R 100 + 8 [0]
         5 D R 100 + 8 [a]
         9 C R 100 + 8 [0]";
    assert_eq!(times(&read(&text(lines))[0]), [None, Some(5), Some(9)]);
    let options = ReadOptions {
        stream: Stream::Issue,
        ..ReadOptions::default()
    };
    let issued: Vec<_> = reader(&text(lines), None, &options)
        .unwrap()
        .flatten()
        .collect();
    assert_eq!(issued.len(), 1);
    assert_eq!(issued[0].latency_ns(), Some(4_000));
}

#[test]
fn waiting_is_bounded_and_counted() {
    let mut lines = String::new();
    for i in 0..100 {
        lines += &format!("{i} Q R {} + 8 [a]\n", i * 8);
    }
    lines += "200 C R 0 + 8 [0]\n201 C R 792 + 8 [0]\n202 C R 5000 + 8 [0]";
    let options = ReadOptions {
        limits: Limits {
            pending_max: 10,
            ..Limits::default()
        },
        ..ReadOptions::default()
    };
    let mut r = reader(&text(&lines), None, &options).unwrap();
    let got: Vec<_> = r.by_ref().flatten().collect();
    // The first was returned without its completion; the last has it.
    assert_eq!(
        (got[0].complete_ns, got[99].complete_ns),
        (None, Some(201_000))
    );
    assert_eq!(r.counted(NOTE_ORPHAN), 2);
    assert_eq!(r.counted(NOTE_UNFINISHED), 9);
    // A minute of trace time also exceeds the limit.
    let late = text("0 Q R 0 + 8 [a]\n70000000 Q R 8 + 8 [a]\n70000001 C R 0 + 8 [0]");
    assert_eq!(read(&late)[0].complete_ns, None);
}

#[test]
fn the_summary_is_not_an_event() {
    let mut bytes = text("0 Q R 0 + 8 [a]\n5 C R 0 + 8 [0]");
    bytes.extend_from_slice(
        b"CPU0 (sda):\n Reads Queued:           3,       64KiB\n\nTotal (sda):\n",
    );
    assert_eq!(read(&bytes).len(), 1);
}

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
fn life() -> Vec<Event> {
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
    for e in life() {
        w.event(&e).unwrap();
    }
    w.finish().unwrap();
    out.bytes()
}

#[test]
fn our_own_events_come_back_as_records() {
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
fn text_looks_as_blkparse_prints_it() {
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
fn other_versions_and_lost_bytes_are_refused() {
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
fn events_of_odd_lengths_and_of_none() {
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
fn events_a_little_out_of_order_are_sorted() {
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
fn sorted_events_of_one_instant_keep_their_order() {
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

/// Recorded on Linux 6.18 over a modelled disk: a 4 KiB file created, written and fsynced on ext4,
/// then 2 MiB read with read-ahead.
#[test]
fn a_kernels_own_text() {
    let text = include_bytes!("data/ftrace-6.18.txt");
    let mut r = reader(text, None, &ReadOptions::default()).expect("detected");
    assert_eq!(r.format().name, "ftrace");
    let got: Vec<Record> = r.by_ref().collect::<Result<_, _>>().expect("read");
    // Data, six journal blocks, the commit, and two reads, all complete.
    let of = |op, f: Flags| {
        got.iter()
            .filter(|r| r.op == op && r.flags.contains(f))
            .count()
    };
    assert_eq!(got.len(), 10, "{got:?}");
    assert_eq!(
        (of(Op::Write, Flags::META), of(Op::Read, Flags::RAHEAD)),
        (7, 2)
    );
    assert!(
        got.iter()
            .all(|r| r.complete_ns.is_some() && r.issue_ns.is_some())
    );
    assert_eq!(
        r.tasks().and_then(|t| t.get(&8735)).map(String::as_str),
        Some("jbd2/loop0-8")
    );
    // The journal's six bios were one request of 48 sectors.
    let issue = ReadOptions {
        stream: Stream::Issue,
        ..ReadOptions::default()
    };
    let issued = reader(text, None, &issue).expect("detected");
    let sizes: Vec<u32> = issued.map(|r| r.expect("read").sectors.0).collect();
    assert_eq!(sizes, [8, 48, 0, 8, 0, 1024, 1024, 512]);
}

/// Output of tracefs if only request events were recorded.
const ISSUE_ONLY: &[u8] = b"# tracer: nop
     app-300  [002] d..1  8018.233161: block_rq_issue: 8,0 WS 8192 () 1000000 + 16 [app]
  <idle>-0     [004] d.h1  8018.243833: block_rq_complete: 8,0 WS () 1000000 + 16 [0]
     app-300  [002] d..1  8018.253161: block_rq_issue: 8,0 R 8192 () 1000600 + 16 [app]
  <idle>-0     [004] d.h1  8018.254833: block_rq_complete: 8,0 R () 1000600 + 16 [0]
";

#[test]
fn a_trace_without_queue_events_is_read_by_its_issue_events_and_says_so() {
    let mut r = reader(ISSUE_ONLY, None, &ReadOptions::default()).expect("detected");
    let got: Vec<_> = r.by_ref().map(|r| r.expect("read")).collect();
    let seen: Vec<_> = got
        .iter()
        .map(|r| (r.t_ns, r.op, r.sector.0, r.complete_ns))
        .collect();
    assert_eq!(
        seen,
        [
            (0, Op::Write, 1_000_000, Some(10_672_000)),
            (20_000_000, Op::Read, 1_000_600, Some(21_672_000)),
        ]
    );
    assert_eq!(r.warnings(), [NOTE_ISSUE_STREAM]);
    // No warning if it was requested.
    let issue = ReadOptions {
        stream: Stream::Issue,
        ..ReadOptions::default()
    };
    let mut r = reader(ISSUE_ONLY, None, &issue).expect("detected");
    let same: Vec<_> = r.by_ref().map(|r| r.expect("read")).collect();
    assert_eq!((same, r.warnings()), (got, Vec::new()));
}

/// A trace that begins under load has issue events first; its queue events still begin the records.
#[test]
fn one_queue_event_decides() {
    let lines = "0 D R 900 + 8 [a]\n 5 C R 900 + 8 [0]\n 7 Q R 100 + 8 [a]\n 8 D R 100 + 8 [a]\n 9 C R 100 + 8 [0]";
    let mut r = reader(&text(lines), None, &ReadOptions::default()).expect("detected");
    let got: Vec<_> = r.by_ref().map(|r| r.expect("read")).collect();
    assert_eq!(got.len(), 1);
    assert_eq!(
        (got[0].sector.0, times(&got[0])),
        (100, [None, Some(1), Some(2)])
    );
    assert_eq!((r.counted(NOTE_ORPHAN), r.counted(NOTE_LATE_QUEUE)), (1, 0));
}

/// After 65,536 events without one, it is too late for a queue event to begin a record.
#[test]
fn a_late_queue_event_is_counted() {
    let mut lines: String = (0..(1 << 16))
        .map(|i| format!("{i} D R {} + 8 [a]\n", i * 8))
        .collect();
    lines += "70000 Q R 8 + 8 [a]";
    let mut r = reader(&text(&lines), None, &ReadOptions::default()).expect("detected");
    assert_eq!(r.by_ref().filter(|r| r.is_ok()).count(), 1 << 16);
    assert_eq!(r.counted(NOTE_LATE_QUEUE), 1);
    assert!(r.warnings().contains(&NOTE_ISSUE_STREAM.to_owned()));
}

/// Devices are counted by the events that begin records, including devices that were not requested.
#[test]
fn devices_of_a_trace_without_queue_events_are_told() {
    let two = String::from_utf8(ISSUE_ONLY.to_vec()).expect("text");
    let two = two.replacen("8,0 R", "8,16 R", 2);
    let mut r = reader(two.as_bytes(), None, &ReadOptions::default()).expect("detected");
    assert_eq!(r.by_ref().count(), 2);
    let said = r.warnings().join("\n");
    assert!(
        said.contains("2 devices are treated as one: 8,0 (1), 8,16 (1)"),
        "{said}"
    );
    let other = ReadOptions {
        device: Some(8 << 20 | 32),
        ..ReadOptions::default()
    };
    let e = reader(two.as_bytes(), None, &other)
        .expect("detected")
        .next();
    let e = e
        .expect("an answer")
        .expect_err("no such device")
        .to_string();
    assert!(
        e.contains("no record of device 8,32") && e.contains("8,0 (1), 8,16 (1)"),
        "{e}"
    );
}
