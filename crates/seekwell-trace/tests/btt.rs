//! Compares the survey with btt, an independent program: the same trace must give the same figures.
//! Skipped with a message if btt is not installed (Debian: blktrace).
//!
//! Not compared: btt's median of distances, which is wrong for traces of a few events (0 of seven
//! different distances), and its #Q, which counts requeues.

use crate::common::{Folder, Shared};
use rand::Rng;
use seekwell_core::{Action, Event, Flags, Instant, Op, Sector, Sectors, TaskId};
use seekwell_trace::survey::{Survey, survey};
use seekwell_trace::{
    BlktraceWriter, EventWriter, ReadOptions, WriteOptions, Writer, from_reader, open,
};
use std::collections::VecDeque;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

fn surveyed(path: &Path) -> Survey {
    let options = ReadOptions {
        keep_events: true,
        ..ReadOptions::default()
    };
    let mut reader = open(path, None, &options).expect("it opens");
    survey(&mut reader, &options, None, |_| true).expect("it is read")
}

/// Runs btt on a trace, and returns its output. Returns `None` if btt is not installed.
fn btt(path: &Path) -> Option<String> {
    // btt writes files into its working directory.
    let out = Command::new("btt")
        .arg("-i")
        .arg(path)
        .current_dir(path.parent()?)
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Returns the words of the line that begins with `begins`, below `heading`.
fn line<'a>(text: &'a str, heading: &str, begins: &str) -> Option<Vec<&'a str>> {
    let below = text.split_once(heading)?.1;
    let own = below.split("\n====").next()?;
    let found = own.lines().find(|l| l.trim().starts_with(begins))?;
    Some(found.split_whitespace().collect())
}

/// Compares all phases, merges and distances with btt's. Returns the number of figures.
fn assert_equal_to_btt(s: &Survey, text: &str) -> usize {
    let mut figures = 0;
    for name in ["Q2Q", "Q2G", "G2I", "Q2M", "I2D", "M2D", "D2C", "Q2C"] {
        let own = s.phases.iter().find(|p| p.name == name);
        let theirs = line(text, " All Devices ", name);
        let (Some(own), Some(theirs)) = (own, &theirs) else {
            assert!(
                own.is_none() && theirs.is_none(),
                "{name}: {own:?} {theirs:?}"
            );
            continue;
        };
        let of = |ns: f64| format!("{:.9}", ns / 1e9);
        let p = &own.spread;
        // btt reports no duration below one nanosecond.
        let ours = [
            of(p.min_ns.max(1) as f64),
            of(p.max_ns as f64),
            p.n.to_string(),
        ];
        assert_eq!([theirs[1], theirs[3], theirs[4]], ours, "{name}");
        // Allow a rounding error of half a nanosecond.
        let mean: f64 = theirs[2].parse().expect("a mean");
        let off_ns = (mean * 1e9 - p.mean_ns).abs();
        assert!(off_ns < 0.51, "{name}: {mean} {}", p.mean_ns);
        figures += 4;
    }
    let m = &s.merges;
    let theirs = line(text, " Device Merge Information ", "(  ").expect("merges");
    // The columns are "( 8, 16) | #Q #D Ratio | min avg max Total".
    let behind: Vec<&str> = theirs.iter().rev().take(8).rev().copied().collect();
    let mean = m.issued_sectors / m.issued;
    let ours =
        [m.issued, m.issued_min, mean, m.issued_max, m.issued_sectors].map(|n| n.to_string());
    assert_eq!(
        [behind[1], behind[4], behind[5], behind[6], behind[7]],
        ours,
        "{theirs:?}"
    );
    figures += 5;
    for (heading, own) in [
        (" Device Q2Q Seek Information ", Some(&s.seeks_queued)),
        (" Device D2D Seek Information ", s.seeks_issued.as_ref()),
    ] {
        let own = own.expect("told");
        let theirs = line(text, heading, "(  ").expect(heading);
        let at = theirs.iter().position(|w| *w == "|").expect("a bar");
        let ours = [own.n.to_string(), format!("{:.1}", own.mean)];
        assert_eq!([theirs[at + 1], theirs[at + 2]], ours, "{heading}");
        figures += 2;
        let mode = format!("{}({})", own.mode, own.mode_n);
        let later = text.split_once(heading).expect("it is there").1;
        assert!(later.contains(&mode), "{heading}: no {mode}");
        figures += 1;
    }
    let at_queue = line(text, " Active Requests At Q Information ", "(  ").expect("depth");
    assert_eq!(
        at_queue.last().copied(),
        Some(&*format!("{:.1}", s.depth.at_queue))
    );
    figures + 1
}

/// A request of the generated block layer.
struct Request {
    sector: u64,
    sectors: u64,
    write: bool,
}

/// Simulates a block layer with a few rules and random input. Bios merge at both ends, while
/// plugged or later. Requests have two directions. The driver takes up to four requests at a time
/// and completes them in any order.
fn events(seed: u64, n: usize) -> Vec<Event> {
    let mut rng = seekwell_core::rng::stream(seed, "btt");
    let (mut out, mut t_ns) = (Vec::new(), 0);
    let (mut waiting, mut driver) = (VecDeque::<Request>::new(), Vec::<Request>::new());
    let mut at = [1 << 20, 1 << 30];
    let say = |out: &mut Vec<Event>, t_ns: u64, action, write, sector, sectors: u64| {
        out.push(Event {
            task: Some(TaskId(if write { 200 } else { 100 })),
            op: if write { Op::Write } else { Op::Read },
            flags: Flags::SYNC,
            sector: Sector(sector),
            sectors: Sectors(sectors as u32),
            ..Event::new(Instant::at_ns(t_ns), action)
        });
    };
    for _ in 0..n {
        let mut tick = |rng: &mut seekwell_core::rng::Pcg64Mcg| {
            t_ns += rng.random_range(100..9_000);
            t_ns
        };
        let write = rng.random_range(0..3) == 0;
        let sectors = 8 << rng.random_range(0..3);
        let place = &mut at[usize::from(write)];
        if rng.random_range(0..4) == 0 {
            // Each position is used only once, and in ascending order, so that no two requests
            // touch.
            *place += rng.random_range(1..1 << 14) * 64;
        }
        let sector = *place;
        *place += sectors;
        say(
            &mut out,
            tick(&mut rng),
            Action::Queue,
            write,
            sector,
            sectors,
        );
        let end = waiting
            .iter_mut()
            .find(|r| r.write == write && r.sector + r.sectors == sector && r.sectors < 128);
        if let Some(r) = end {
            r.sectors += sectors;
            say(
                &mut out,
                tick(&mut rng),
                Action::BackMerge,
                write,
                sector,
                sectors,
            );
        } else {
            say(
                &mut out,
                tick(&mut rng),
                Action::GetRq,
                write,
                sector,
                sectors,
            );
            let mut r = Request {
                sector,
                sectors,
                write,
            };
            // This bio merges while it is plugged, before the insertion.
            if rng.random_range(0..3) == 0 {
                let place = &mut at[usize::from(write)];
                let (sector, sectors) = (*place, 8);
                *place += sectors;
                say(
                    &mut out,
                    tick(&mut rng),
                    Action::Queue,
                    write,
                    sector,
                    sectors,
                );
                say(
                    &mut out,
                    tick(&mut rng),
                    Action::BackMerge,
                    write,
                    sector,
                    sectors,
                );
                r.sectors += sectors;
            }
            say(
                &mut out,
                tick(&mut rng),
                Action::Insert,
                write,
                r.sector,
                r.sectors,
            );
            waiting.push_back(r);
        }
        while driver.len() < 4 && rng.random_range(0..2) == 0 {
            let Some(r) = waiting.pop_front() else { break };
            say(
                &mut out,
                tick(&mut rng),
                Action::Issue,
                r.write,
                r.sector,
                r.sectors,
            );
            driver.push(r);
        }
        while !driver.is_empty() && rng.random_range(0..3) > 0 {
            let r = driver.swap_remove(rng.random_range(0..driver.len()));
            say(
                &mut out,
                tick(&mut rng),
                Action::Complete,
                r.write,
                r.sector,
                r.sectors,
            );
        }
    }
    for r in driver {
        t_ns += 1000;
        say(
            &mut out,
            t_ns,
            Action::Complete,
            r.write,
            r.sector,
            r.sectors,
        );
    }
    for r in waiting {
        t_ns += 5000;
        say(&mut out, t_ns, Action::Issue, r.write, r.sector, r.sectors);
        t_ns += 1000;
        say(
            &mut out,
            t_ns,
            Action::Complete,
            r.write,
            r.sector,
            r.sectors,
        );
    }
    out
}

fn written(events: &[Event]) -> Vec<u8> {
    let out = Shared::default();
    let mut w = BlktraceWriter::new(Box::new(out.clone()), &WriteOptions::default());
    for e in events {
        w.event(e).expect("it is written");
    }
    w.finish().expect("it is written");
    out.bytes()
}

#[test]
fn survey_figures_equal_those_of_btt() {
    let folder = Folder::new();
    let (mut figures, mut events_read) = (0, 0);
    for seed in 0..6 {
        let n = [40, 400, 4_000][seed as usize % 3];
        let all = events(seed, n);
        events_read += all.len();
        let path = folder.file("t.blktrace", &written(&all));
        let Some(text) = btt(&path) else {
            println!("not held against btt: it is not installed (Debian: blktrace)");
            return;
        };
        figures += assert_equal_to_btt(&surveyed(&path), &text);
    }
    println!("{figures} figures of {events_read} events are btt's");
    assert!(figures > 200, "{figures}");
}

/// The trace comes from a real kernel. It has jbd2, merges, flushes, and writes of several sizes on
/// a loop device.
#[test]
fn survey_figures_of_a_real_kernel_trace_equal_those_of_btt() {
    let text = include_bytes!("data/ftrace-6.18.txt");
    let options = ReadOptions {
        keep_events: true,
        ..ReadOptions::default()
    };
    let mut reader = from_reader("mem", Cursor::new(&text[..]), None, &options).expect("it opens");
    let mut all = Vec::new();
    while let Some(r) = reader.next() {
        r.expect("it is read");
        reader.take_events(&mut all);
    }
    reader.take_events(&mut all);
    let base = reader.base_ns().expect("a record");
    // btt skips flushes. It also loses a split bio, because the bio goes to the driver in parts,
    // and no part covers it completely.
    let as_event = |e: &seekwell_trace::blk::BlkEvent| Event {
        task: Some(TaskId(e.task)),
        op: e.op,
        flags: e.flags,
        sector: Sector(e.sector),
        sectors: Sectors(e.sectors),
        ..Event::new(Instant::at_ns(e.t_ns - base), e.action)
    };
    let split = 270_336..270_336 + 2_048;
    let moving = all
        .iter()
        .filter(|e| !e.is_flush() && !split.contains(&e.sector));
    let all: Vec<Event> = moving.map(as_event).collect();
    assert!(all.len() > 25, "{}", all.len());
    let folder = Folder::new();
    let path = folder.file("t.blktrace", &written(&all));
    let Some(text) = btt(&path) else {
        println!("not held against btt: it is not installed (Debian: blktrace)");
        return;
    };
    let figures = assert_equal_to_btt(&surveyed(&path), &text);
    println!(
        "{figures} figures of {} events of a 6.18 kernel are btt's",
        all.len()
    );
}
