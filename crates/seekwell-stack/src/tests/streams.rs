//! Tests with simple operations, for which every bio can be predicted.

use super::disk::{Disk, Line};
use super::machine::{Machine, free_cpu};
use crate::{Call, Fd};
use seekwell_core::{Era, Flags, Instant, Nanos, Op, OpenFlags, TaskId};

fn kib(l: &Line) -> u64 {
    l.bio.sectors.bytes() / 1024
}
fn show(log: &[Line]) -> String {
    let one = |l: &Line| {
        format!(
            "{} task {} {:?} {} KiB at {} {:?}",
            l.at,
            l.bio.task.0,
            l.bio.op,
            kib(l),
            l.bio.sector,
            l.bio.flags
        )
    };
    log.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn new_file(m: &mut Machine, t: TaskId, name: &str) -> Fd {
    let open = Call::Open {
        path: name.into(),
        flags: OpenFlags::CREATE,
    };
    Fd(m.call(t, open).expect("makes a file") as u32)
}

#[test]
fn fsync_of_a_new_file_writes_data_then_journal_then_commit_record() {
    let mut m = Machine::new(free_cpu(Era::K3_4), Disk::hdd());
    let t = m.task("writer");
    let fd = new_file(&mut m, t, "/a");
    assert_eq!(
        m.call(
            t,
            Call::Write {
                fd,
                off: 0,
                len: 1 << 20
            }
        ),
        Ok(1 << 20)
    );
    assert!(m.take_log().is_empty(), "nothing goes out by itself");
    let t0 = m.now;
    assert_eq!(m.call(t, Call::Fsync { fd }), Ok(0));
    let log = m.take_log();
    println!("{}", show(&log));
    let data: Vec<_> = log.iter().filter(|l| l.bio.task == t).collect();
    let journal: Vec<_> = log.iter().filter(|l| l.bio.task == TaskId(2)).collect();
    assert_eq!(data.iter().map(|l| kib(l)).collect::<Vec<_>>(), [512, 512]);
    assert!(
        data.iter()
            .all(|l| l.bio.flags == Flags::SYNC | Flags::NOIDLE)
    );
    assert_eq!(data[0].bio.end(), data[1].bio.sector, "one run");
    // The journal gets a descriptor, seven blocks and a commit record. The seven blocks are the
    // directory block, the block with the inodes of the root and of the file, the inode bitmap and
    // its descriptor, two block bitmaps (for two groups), and the block group descriptor.
    let n = journal.len();
    println!("journal blocks: {n}");
    assert!((7..=10).contains(&n), "about eight");
    let record = journal[n - 1];
    assert!(
        record
            .bio
            .flags
            .contains(Flags::PREFLUSH | Flags::FUA | Flags::SYNC)
    );
    assert!(
        journal[0].at >= data[1].done,
        "data are there before the journal is written"
    );
    assert!(
        record.at >= journal[n - 2].done,
        "and the blocks before their record"
    );
    for pair in journal.windows(2) {
        assert_eq!(
            pair[0].bio.end(),
            pair[1].bio.sector,
            "the journal is sequential"
        );
    }
    assert_eq!(m.now, record.done);
    println!(
        "fsync of 1 MiB on a disk: {:.1} ms",
        m.now.since(t0).as_ms_f64()
    );
}

#[test]
fn fdatasync_of_an_overwrite_is_data_and_one_flush() {
    let mut m = Machine::new(free_cpu(Era::K3_4), Disk::ssd());
    let t = m.task("wal");
    let fd = new_file(&mut m, t, "/wal");
    m.call(
        t,
        Call::Write {
            fd,
            off: 0,
            len: 16 << 20,
        },
    )
    .expect("writes");
    m.call(t, Call::Fsync { fd }).expect("syncs");
    m.take_log();
    for i in 0..5u64 {
        m.call(
            t,
            Call::Write {
                fd,
                off: i * 8192,
                len: 8192,
            },
        )
        .expect("writes");
        m.call(t, Call::Fdatasync { fd }).expect("syncs");
        let log = m.take_log();
        assert_eq!(log.len(), 2, "{}", show(&log));
        assert_eq!((log[0].bio.op, kib(&log[0])), (Op::Write, 8));
        assert_eq!((log[1].bio.op, kib(&log[1])), (Op::Flush, 0));
        assert!(log[1].at >= log[0].done);
        m.idle(Nanos::from_ms(20));
    }
    // In contrast, fsync commits the times of the inode, with journal blocks and a commit record.
    m.call(
        t,
        Call::Write {
            fd,
            off: 0,
            len: 8192,
        },
    )
    .expect("writes");
    m.call(t, Call::Fsync { fd }).expect("syncs");
    let log = m.take_log();
    println!("fsync in place:\n{}", show(&log));
    assert_eq!(
        log.iter().filter(|l| l.bio.task == TaskId(2)).count(),
        3,
        "{}",
        show(&log)
    );
}

#[test]
fn sequential_reader_requests_16_32_64_128_kib() {
    let mut m = Machine::new(free_cpu(Era::K3_4), Disk::hdd());
    let t = m.task("reader");
    let fd = new_file(&mut m, t, "/big");
    m.call(
        t,
        Call::Write {
            fd,
            off: 0,
            len: 8 << 20,
        },
    )
    .expect("writes");
    m.call(t, Call::Fsync { fd }).expect("syncs");
    m.call(t, Call::Close { fd }).expect("closes");
    m.take_log();
    m.call(t, Call::DropCaches).expect("drops");
    let open = Call::Open {
        path: "/big".into(),
        flags: OpenFlags::empty(),
    };
    let fd = Fd(m.call(t, open).expect("opens") as u32);
    let meta = m.take_log();
    println!("open after drop_caches:\n{}", show(&meta));
    assert!(
        meta.iter()
            .all(|l| l.bio.op == Op::Read && l.bio.flags.contains(Flags::META))
    );
    for i in 0..2048u64 {
        m.call(
            t,
            Call::Read {
                fd,
                off: i * 4096,
                len: 4096,
            },
        )
        .expect("reads");
    }
    let log = m.take_log();
    let sizes: Vec<u64> = log.iter().map(kib).collect();
    println!("KiB: {sizes:?}");
    assert_eq!(sizes[..5], [16, 32, 64, 128, 128]);
    assert_eq!(sizes.iter().sum::<u64>(), 8192, "each page once");
    assert!(
        log.iter()
            .all(|l| l.bio.flags.is_empty() && l.bio.task == t)
    );
}

#[test]
fn flusher_writes_data_after_30_s_and_metadata_later() {
    let mut m = Machine::new(free_cpu(Era::K3_4), Disk::hdd());
    let t = m.task("writer");
    for i in 0..4 {
        let fd = new_file(&mut m, t, &format!("/f{i}"));
        m.call(
            t,
            Call::Write {
                fd,
                off: 0,
                len: 16384,
            },
        )
        .expect("writes");
        m.call(t, Call::Close { fd }).expect("closes");
    }
    m.idle(Nanos::from_secs(29));
    let log = m.take_log();
    println!("in 29 s:\n{}", show(&log));
    assert!(log.iter().all(|l| l.bio.task == TaskId(2)), "commits only");
    assert!(!log.is_empty());
    m.idle(Nanos::from_secs(11));
    let log = m.take_log();
    println!("then:\n{}", show(&log));
    let home = log.iter().filter(|l| l.at > Instant::at_us(35_000_000));
    assert!(
        home.count() >= 5,
        "metadata go home 35 s after their commit"
    );
    let data: Vec<_> = log.iter().filter(|l| l.bio.task == TaskId(1)).collect();
    assert!(data.iter().all(|l| l.bio.flags.is_empty()), "async");
    let file: Vec<_> = data.iter().filter(|l| kib(l) == 16).collect();
    assert_eq!(file.len(), 4);
    for pair in file.windows(2) {
        assert_eq!(
            pair[0].bio.end(),
            pair[1].bio.sector,
            "small files lie together"
        );
    }
    m.idle(Nanos::from_secs(120));
    m.take_log();
    m.idle(Nanos::from_secs(300));
    assert!(m.take_log().is_empty(), "then all is quiet");
}

#[test]
fn kernel_2_6_writes_single_blocks_without_sync_flags() {
    let mut m = Machine::new(free_cpu(Era::K2_6_24), Disk::hdd());
    let t = m.task("writer");
    let fd = new_file(&mut m, t, "/a");
    m.call(
        t,
        Call::Write {
            fd,
            off: 0,
            len: 65536,
        },
    )
    .expect("writes");
    m.call(t, Call::Fsync { fd }).expect("syncs");
    let log = m.take_log();
    println!("{}", show(&log));
    assert!(
        log.iter().all(|l| l.bio.flags.is_empty()),
        "no sync, no flush"
    );
    let mine = |l: &&Line| l.bio.task == t && l.bio.op == Op::Write;
    let data: Vec<_> = log.iter().filter(mine).collect();
    assert_eq!(data.len(), 16);
    assert!(data.iter().all(|l| kib(l) == 4));
}
