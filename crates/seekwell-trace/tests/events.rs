//! Tests block traces of real kernels: merges, splits, partial completions, flush sequences and
//! requeues. Also writes and reads Seekwell's own event stream.

use crate::common::{read, reader};
use seekwell_core::{Flags, Op};
use seekwell_trace::join::{NOTE_ISSUE_STREAM, NOTE_LATE_QUEUE, NOTE_ORPHAN, NOTE_UNFINISHED};
use seekwell_trace::{Limits, ReadOptions, Record, Stream};

/// Converts lines of the form `us ACTION RWBS rest` to the blkparse text of one device.
pub fn text(lines: &str) -> Vec<u8> {
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

pub fn times(r: &Record) -> [Option<u64>; 3] {
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
    // These bios merged on the plug list, so all of them entered the scheduler with the request. A
    // bio that merges later enters at its merge.
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
fn split_bio_completes_with_its_last_part() {
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
fn request_may_complete_in_parts() {
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
fn older_of_two_requests_at_one_sector_completes_first() {
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
fn internal_flush_does_not_complete_the_submitted_flush() {
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
    // An old kernel reports only FN, so this event is used instead.
    let old = read(&text("0 Q FWS [jbd2]\n 10 C FN 0 [0]"));
    assert_eq!(old[0].complete_ns, Some(10_000));
}

#[test]
fn requeued_request_has_its_last_issue_time() {
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
fn number_of_pending_requests_is_bounded_and_excess_counted() {
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
    // The first record was returned without its completion. The last record has its completion.
    assert_eq!(
        (got[0].complete_ns, got[99].complete_ns),
        (None, Some(201_000))
    );
    assert_eq!(r.counted(NOTE_ORPHAN), 2);
    assert_eq!(r.counted(NOTE_UNFINISHED), 9);
    // The limit is also exceeded after a minute of trace time.
    let late = text("0 Q R 0 + 8 [a]\n70000000 Q R 8 + 8 [a]\n70000001 C R 0 + 8 [0]");
    assert_eq!(read(&late)[0].complete_ns, None);
}

#[test]
fn summary_lines_are_no_events() {
    let mut bytes = text("0 Q R 0 + 8 [a]\n5 C R 0 + 8 [0]");
    bytes.extend_from_slice(
        b"CPU0 (sda):\n Reads Queued:           3,       64KiB\n\nTotal (sda):\n",
    );
    assert_eq!(read(&bytes).len(), 1);
}

/// Recorded on Linux 6.18 over a modelled disk: a 4 KiB file created, written and fsynced on ext4,
/// then 2 MiB read with read-ahead.
#[test]
fn trace_text_of_a_real_kernel_is_read() {
    let text = include_bytes!("data/ftrace-6.18.txt");
    let mut r = reader(text, None, &ReadOptions::default()).expect("detected");
    assert_eq!(r.format().name, "ftrace");
    let got: Vec<Record> = r.by_ref().collect::<Result<_, _>>().expect("read");
    // The trace has the data, six journal blocks, the commit block and two reads. All of them are
    // complete.
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
    // The journal has a higher priority than the program.
    let levels: Vec<Option<u8>> = got.iter().map(|r| r.ioprio.map(|p| p.level)).collect();
    assert_eq!(levels, [4, 3, 3, 3, 3, 3, 3, 3, 4, 4].map(Some));
    // The six bios of the journal formed one request of 48 sectors.
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
fn trace_without_queue_events_is_read_by_issue_events() {
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
    // There is no warning if the user requests issue events.
    let issue = ReadOptions {
        stream: Stream::Issue,
        ..ReadOptions::default()
    };
    let mut r = reader(ISSUE_ONLY, None, &issue).expect("detected");
    let same: Vec<_> = r.by_ref().map(|r| r.expect("read")).collect();
    assert_eq!((same, r.warnings()), (got, Vec::new()));
}

/// A trace that begins under load has issue events first. Its queue events begin the records
/// nevertheless.
#[test]
fn single_queue_event_selects_the_queue_stream() {
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

/// After 65,536 events without a queue event, a later queue event cannot begin a record.
#[test]
fn late_queue_event_is_counted() {
    let mut lines: String = (0..(1 << 16))
        .map(|i| format!("{i} D R {} + 8 [a]\n", i * 8))
        .collect();
    lines += "70000 Q R 8 + 8 [a]";
    let mut r = reader(&text(&lines), None, &ReadOptions::default()).expect("detected");
    assert_eq!(r.by_ref().filter(|r| r.is_ok()).count(), 1 << 16);
    assert_eq!(r.counted(NOTE_LATE_QUEUE), 1);
    assert!(r.warnings().contains(&NOTE_ISSUE_STREAM.to_owned()));
}

/// Devices are counted by the events that begin records. Devices that the user did not select are
/// counted too.
#[test]
fn devices_of_a_trace_without_queue_events_are_counted() {
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
