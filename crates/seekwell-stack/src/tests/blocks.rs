//! Tests of the state of blocks: unwritten blocks are converted, freed blocks wait for the commit,
//! and each commit waits for the right data.

use super::disk::Disk;
use super::machine::{Machine, free_cpu};
use crate::{Call, Fd};
use seekwell_core::{Control, Era, Errno, Nanos, Op, OpenFlags, SyncRange, TaskId};

fn open(m: &mut Machine, t: TaskId, path: &str) -> Fd {
    let flags = OpenFlags::CREATE;
    let path = path.into();
    Fd(m.call(t, Call::Open { path, flags }).expect("opens") as u32)
}
fn write(m: &mut Machine, t: TaskId, fd: Fd, off: u64, len: u64) {
    m.call(t, Call::Write { fd, off, len }).expect("writes");
}

#[test]
fn commit_waits_for_data_only_without_unwritten_extents() {
    let mut waits = Vec::new();
    for era in [Era::K2_6_24, Era::K3_4, Era::K4_0, Era::Mq6_18] {
        let mut m = Machine::new(free_cpu(era), Disk::hdd());
        let t = m.task("bulk");
        let fd = open(&mut m, t, "/big");
        let (off, len) = (0, 8 << 20);
        write(&mut m, t, fd, off, len);
        let how = SyncRange::WRITE;
        let c = Call::SyncRange { fd, off, len, how };
        m.call(t, c).expect("starts");
        let w = m.kernel.world();
        let txn = w.journal.running.as_ref().expect("blocks were allocated");
        println!(
            "{}: files whose data the commit waits for: {}; pages under writeback {}",
            era.name(),
            txn.inodes.len(),
            w.cache.nr_wb
        );
        assert_eq!(w.cache.nr_wb, 2048);
        waits.push(txn.inodes.len());
    }
    assert_eq!(waits, [1, 1, 1, 0]);
}

#[test]
fn freed_blocks_are_not_reused_before_the_commit() {
    for era in [Era::K2_6_24, Era::K3_4, Era::Mq6_18] {
        let mut m = Machine::new(free_cpu(era), Disk::ssd());
        let t = m.task("program");
        let place = |m: &mut Machine, name: &str| {
            let fd = open(m, t, name);
            // The file is too large for the pools of small files, which are in another place.
            write(m, t, fd, 0, 1 << 20);
            m.call(t, Call::Fsync { fd }).expect("syncs");
            let block = m.kernel.block_of(fd, 0).expect("has one");
            m.call(t, Call::Close { fd }).expect("closes");
            block
        };
        let first = place(&mut m, "/a");
        let path = || "/a".into();
        m.call(t, Call::Unlink { path: path() }).expect("unlinks");
        let second = place(&mut m, "/b");
        let third = place(&mut m, "/c");
        println!(
            "{}: {first}, while its end is not committed {second}, then {third}",
            era.name()
        );
        assert_ne!(second, first, "its bitmap is not on the disk yet");
        assert_eq!(third, first, "the commit for /b was its end");
        m.kernel.check();
    }
}

#[test]
fn preallocated_blocks_read_as_zeros_and_are_converted_once() {
    for era in [Era::K2_6_24, Era::K3_4, Era::K4_0, Era::Mq6_18] {
        let mut m = Machine::new(free_cpu(era), Disk::ssd());
        let t = m.task("program");
        let fd = open(&mut m, t, "/f");
        let (off, len) = (0, 1 << 20);
        let r = m.call(t, Call::Fallocate { fd, off, len });
        if era < Era::K3_4 {
            assert_eq!(r, Err(Errno::EOPNOTSUPP), "ext3");
            continue;
        }
        r.expect("allocates");
        m.call(t, Call::Fsync { fd }).expect("syncs");
        m.take_log();
        m.call(t, Call::Read { fd, off, len }).expect("reads");
        assert!(m.take_log().is_empty(), "zeroes come from nowhere");
        m.call(t, Call::DropCaches).expect("drops");
        // The writes cover parts of a page. The rest of the page need not be read.
        let mut blocks = Vec::new();
        for _ in 0..2 {
            write(&mut m, t, fd, 8192, 100);
            m.call(t, Call::Fdatasync { fd }).expect("syncs");
            let log = m.take_log();
            let own = |l: &&super::disk::Line| l.bio.op == Op::Read && l.bio.task == t;
            assert_eq!(
                log.iter()
                    .filter(own)
                    .filter(|l| l.bio.sectors.0 > 8)
                    .count(),
                0
            );
            blocks.push(log.iter().filter(|l| l.bio.task == TaskId(2)).count());
        }
        println!(
            "{}: journal blocks of fdatasync, first and second time: {blocks:?}",
            era.name()
        );
        // The first commit writes a descriptor, an inode and a commit record. After that, the data
        // can be found.
        assert_eq!(blocks, [3, 0]);
        // The data of the next page are still not on the disk.
        m.call(t, Call::DropCaches).expect("drops");
        m.call(
            t,
            Call::Read {
                fd,
                off: 12_288,
                len: 4096,
            },
        )
        .expect("reads");
        m.call(
            t,
            Call::Read {
                fd,
                off: 8192,
                len: 100,
            },
        )
        .expect("reads");
        let read: Vec<u64> = m
            .take_log()
            .iter()
            .filter(|l| l.bio.op == Op::Read)
            .map(|l| l.bio.sector.0 / 8)
            .collect();
        assert!(!read.contains(&m.kernel.block_of(fd, 3).expect("has one")));
        assert!(read.contains(&m.kernel.block_of(fd, 2).expect("has one")));
        m.kernel.check();
    }
}

#[test]
fn one_plug_covers_several_files_since_4_3() {
    for (era, plugs) in [(Era::K3_4, 3), (Era::K4_0, 3), (Era::Mq6_18, 1)] {
        let mut m = Machine::new(free_cpu(era), Disk::ssd());
        let t = m.task("program");
        for i in 0..3 {
            let fd = open(&mut m, t, &format!("/f{i}"));
            write(&mut m, t, fd, 0, 4096);
        }
        // After 30 seconds the data are old enough to be written. The metadata are written later.
        m.idle(Nanos::from_ms(35_100));
        let flusher = |c: &Control| *c == Control::Plug(TaskId(1));
        let s = m.disk.borrow();
        let first = s
            .log
            .iter()
            .find(|l| l.bio.task == TaskId(1))
            .expect("written")
            .at;
        let n = s
            .controls
            .iter()
            .filter(|c| c.0 == first && flusher(&c.1))
            .count();
        println!("{}: {n} plugs over three files", era.name());
        assert_eq!(n, plugs);
    }
}

#[test]
fn large_closed_files_lie_end_to_end_in_6_x() {
    for era in [Era::Mq6_1, Era::Mq, Era::Mq6_18] {
        let mut m = Machine::new(free_cpu(era), Disk::ssd());
        let t = m.task("program");
        // The files have 35, 36 and 37 blocks. A pool takes files of at most 16 blocks.
        let names = ["/a", "/b", "/c"];
        for (name, blocks) in names.iter().zip(35u64..) {
            let fd = open(&mut m, t, name);
            write(&mut m, t, fd, 0, blocks * 4096);
            m.call(t, Call::Close { fd }).expect("closes");
        }
        m.call(t, Call::Syncfs).expect("syncs");
        let starts = names.map(|name| {
            let fd = open(&mut m, t, name);
            m.kernel.block_of(fd, 0).expect("has one")
        });
        assert_eq!(
            [starts[1] - starts[0], starts[2] - starts[1]],
            [35, 36],
            "{}",
            era.name()
        );
        // A file that is open for writing gets room to grow.
        let fds = ["/d", "/e"].map(|name| {
            let fd = open(&mut m, t, name);
            write(&mut m, t, fd, 0, 35 * 4096);
            fd
        });
        m.call(t, Call::Syncfs).expect("syncs");
        let [d, e] = fds.map(|fd| m.kernel.block_of(fd, 0).expect("has one"));
        assert_eq!(e - d, 64, "{}", era.name());
    }
}
