//! Tests of the flusher: how much it writes per visit to a file, and how its writes are marked.

use super::disk::{Disk, Line};
use super::machine::{Machine, free_cpu};
use crate::{Call, Config, Fd};
use seekwell_core::{Era, Flags, Nanos, Op, OpenFlags, TaskId};

const FLUSHER: TaskId = TaskId(1);

/// Makes files of this length, and returns the machine with its dirty pages.
fn dirty(config: Config, files: usize, bytes: u64) -> (Machine, TaskId) {
    let mut m = Machine::new(config, Disk::ssd());
    let t = m.task("writer");
    for i in 0..files {
        let path = format!("/f{i}").into();
        let flags = OpenFlags::CREATE;
        let fd = Fd(m.call(t, Call::Open { path, flags }).expect("opens") as u32);
        let (off, len) = (0, bytes);
        m.call(t, Call::Write { fd, off, len }).expect("writes");
    }
    (m, t)
}

/// Returns the writes of file data by the flusher.
fn data(m: &Machine) -> Vec<Line> {
    let mut log = m.take_log();
    let of_file = |l: &Line| {
        let b = &l.bio;
        b.task == FLUSHER && b.op == Op::Write && !b.flags.contains(Flags::META)
    };
    log.retain(of_file);
    log
}

#[test]
fn visit_to_a_file_writes_at_most_an_eighth_of_the_dirty_limit() {
    for (cache_mib, runs_mib) in [
        // The dirty limit is 95 MiB. An eighth and 4 MiB, rounded down to 4 MiB, are 12 MiB.
        (478, vec![12, 12, 4, 4]),
        // Here a visit may write more than a file has. The second file lies after the first.
        (4096, vec![32]),
    ] {
        let mut config = free_cpu(Era::Mq);
        config.cache_bytes = Some(cache_mib << 20);
        let (mut m, _) = dirty(config, 2, 16 << 20);
        m.idle(Nanos::from_secs(36));
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for l in data(&m) {
            let (start, bytes) = (l.bio.sector.0, l.bio.sectors.bytes());
            match runs.last_mut() {
                Some((end, sum)) if *end == start => (*end, *sum) = (l.bio.end().0, *sum + bytes),
                _ => runs.push((l.bio.end().0, bytes)),
            }
        }
        let mib: Vec<u64> = runs.iter().map(|r| r.1 >> 20).collect();
        assert_eq!(mib, runs_mib, "{cache_mib} MiB");
    }
}

#[test]
fn only_periodic_and_background_writeback_is_marked_background() {
    let (mut m, t) = dirty(free_cpu(Era::Mq), 3, 16_384);
    m.call(t, Call::Syncfs).expect("syncs");
    let of_sync = data(&m);
    assert!(of_sync.len() == 3 && of_sync.iter().all(|l| l.bio.flags.is_empty()));
    let (mut m, _) = dirty(free_cpu(Era::Mq), 3, 16_384);
    m.idle(Nanos::from_secs(36));
    let old = data(&m);
    assert!(old.len() == 3 && old.iter().all(|l| l.bio.flags == Flags::BACKGROUND));
}
