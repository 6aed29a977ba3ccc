//! Entry point for the fuzzer of trace replays. Any bytes are read as a setup, a replay mode, and
//! records with times, addresses and lengths of every size. The replay must complete all records,
//! or end with an error that gives the reason. The tests call it in a short deterministic run. The
//! target in `fuzz/` calls it, too.
//!
//! The numbers of records and of sectors in a run are limited, so that a run is short.

use seekwell_sched::registry;
use seekwell_sim::replay::{Fit, ReplayError, ReplayOptions, replay};
use seekwell_sim::setup::Setup;
use seekwell_trace::{ReplayMode, TIME_MAX_NS, from_reader};
use std::fmt::Write;
use std::io::Cursor;

/// Small devices of every kind, and combinations of devices.
pub const DEVICES: [&str; 11] = [
    "hdd:hitachi-7k200",
    "hdd:hitachi-7k200,model=fast,write_cache=no",
    "constant:depth=4,service_us=100",
    "ssd:sata3-256-2011",
    "emmc:motog-sandisk8,packing=always",
    "cloud:aws-gp2-100",
    "controller:hwraid5-5-wt",
    "raid1:members=2,of=(constant:depth=2,service_us=50),bitmap=yes",
    "raid5:members=3,of=hdd:hitachi-7k200",
    "virtual:over=hdd:hitachi-7k200,cache=writeback,neighbours=random-reader",
    "virtual:over=hdd:hitachi-7k200,format=qcow2,aged=0.5",
];
const MODES: [&str; 6] = [
    "timed",
    "scaled:1/1000",
    "scaled:4000000000/1",
    "depth:1",
    "depth:64",
    "closed",
];
/// Number of input bytes per record. The next two constants limit the records and the sectors of a
/// run.
const RECORD: usize = 8;
const RECORDS_MAX: usize = 200;
const SECTORS_MAX: u64 = 1 << 17;
/// Steps of the clock in ns: zero, the time of a request, pauses, years, and the largest time.
const STEPS: [u64; 8] = [
    0,
    1,
    1_000,
    1_000_000,
    10_000_000_000,
    1 << 53,
    1_700_000_000_000_000_000,
    TIME_MAX_NS,
];

/// Replays the setup and the records in `bytes`. Panics if a request is lost.
pub fn fuzz_one(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    let pick = |b: u8, n: usize| usize::from(b) % n;
    let all = registry();
    let setup = Setup {
        device: DEVICES[pick(head[0], DEVICES.len())].to_owned(),
        scheduler: all[pick(head[1], all.len())].name.to_owned(),
        seed: u64::from(head[3]),
        ..Setup::default()
    };
    let mode: ReplayMode = match MODES[pick(head[2], MODES.len())].parse() {
        Ok(m) => m,
        Err(e) => panic!("{e}"),
    };
    let text = csv(rest);
    let reader = match from_reader("fuzz", Cursor::new(text), None, &Default::default()) {
        Ok(r) => r,
        Err(e) => panic!("a header alone is a trace: {e}"),
    };
    let options = ReplayOptions {
        mode,
        fit: if head[3] % 8 == 7 {
            Fit::Strict
        } else {
            Fit::Wrap
        },
        limit: None,
        time_limit: None,
    };
    match replay(&setup, reader, &options, &mut |_, _| true) {
        Ok(r) => {
            let done = r.read.ios + r.write.ios;
            assert!(done <= RECORDS_MAX as u64, "{done} of {setup:?}");
            assert!(r.seconds.len() as u64 <= done, "{setup:?}");
            let counted: u64 = r.seconds.iter().map(|s| s.reads + s.writes).sum();
            assert_eq!(counted, done, "{setup:?}");
        }
        Err(ReplayError::Setup(e)) => panic!("{setup:?}: {e}"),
        Err(e) => assert!(!e.to_string().is_empty()),
    }
}

/// Converts the input to a trace in CSV with process ids and completions.
fn csv(bytes: &[u8]) -> String {
    let mut text = "t_ns,op,flags,sector,sectors,pid,t_complete\n".to_owned();
    let (mut now, mut left) = (0u64, SECTORS_MAX);
    for r in bytes.chunks_exact(RECORD).take(RECORDS_MAX) {
        let step = STEPS[usize::from(r[0] & 7)];
        now = now.saturating_add(step.saturating_mul(u64::from(r[0] >> 3)));
        let op = ["R", "R", "W", "W", "F", "D", "R", "Z"][usize::from(r[1] & 7)];
        let flags =
            ["", "sync", "fua", "preflush", "meta+prio", "ahead"][usize::from(r[1] >> 3) % 6];
        let place = u64::from(u16::from_le_bytes([r[2], r[3]]));
        // Choose sectors near the start, sectors spread over the device, and the largest sector
        // numbers.
        let sector = match r[4] & 3 {
            0 => place,
            1 => place * 4096 + 8,
            2 => place << 37,
            _ => (1 << 54) - 1 - place,
        };
        let long = match r[4] >> 2 & 15 {
            0 => u64::from(u32::MAX),
            1 => 1 << 23,
            2 => u64::from(r[5]) << 8,
            _ => u64::from(r[5] % 64),
        };
        // When the sector limit is reached, only lengths that every device rejects are used.
        let sectors = if op == "F" {
            0
        } else if long > 1 << 22 {
            long
        } else {
            long.min(left)
        };
        left -= sectors.min(left);
        let took = u64::from(r[6]).saturating_mul(STEPS[usize::from(r[7] & 7)]);
        let done = now.saturating_add(took);
        let pid = r[7] >> 3;
        let _ = writeln!(text, "{now},{op},{flags},{sector},{sectors},{pid},{done}");
    }
    text
}
