//! Properties of any set of programs: every call returns, the counters are right, synced bytes are
//! on the disk, and a full disk causes only ENOSPC.

use super::disk::Disk;
use super::machine::Machine;
use crate::{Call, Config, Fd, Ret};
use proptest::prelude::*;
use seekwell_core::{Access, Advice, Era, Errno, Nanos, Op, OpenFlags, SyncRange};

/// A step of a program. It uses a few files, which may be open or closed.
#[derive(Clone, Debug)]
enum Do {
    Open(u8, u16),
    Close(u8),
    Read(u8, u64, u64),
    Write(u8, u64, u64),
    Append(u8, u64),
    Fsync(u8, bool),
    Range(u8, u64, u64, u8),
    Syncfs,
    Truncate(u8, u64),
    Fallocate(u8, u64, u64),
    Advise(u8, u8),
    Rename(u8, u8),
    Unlink(u8),
    Mkdir(u8),
    Readdir,
    Drop,
    Map(u8),
    Aio(u8, bool, u64, u64),
    Raw(bool, u64, u64, bool),
    Sleep(u64),
    Compute(u64),
}

fn steps() -> impl Strategy<Value = Do> {
    let off = || 0u64..300_000;
    let len = || 0u64..150_000;
    let f = || 0u8..5;
    prop_oneof![
        4 => (f(), 0u16..128).prop_map(|(f, o)| Do::Open(f, o)),
        1 => f().prop_map(Do::Close),
        4 => (f(), off(), len()).prop_map(|(f, o, l)| Do::Read(f, o, l)),
        6 => (f(), off(), len()).prop_map(|(f, o, l)| Do::Write(f, o, l)),
        2 => (f(), len()).prop_map(|(f, l)| Do::Append(f, l)),
        3 => (f(), any::<bool>()).prop_map(|(f, d)| Do::Fsync(f, d)),
        1 => (f(), off(), len(), 0u8..8).prop_map(|(f, o, l, h)| Do::Range(f, o, l, h)),
        1 => Just(Do::Syncfs),
        1 => (f(), off()).prop_map(|(f, l)| Do::Truncate(f, l)),
        1 => (f(), off(), len()).prop_map(|(f, o, l)| Do::Fallocate(f, o, l)),
        1 => (f(), 0u8..5).prop_map(|(f, w)| Do::Advise(f, w)),
        1 => (f(), f()).prop_map(|(a, b)| Do::Rename(a, b)),
        2 => f().prop_map(Do::Unlink),
        1 => f().prop_map(Do::Mkdir),
        1 => Just(Do::Readdir),
        1 => Just(Do::Drop),
        1 => f().prop_map(Do::Map),
        2 => (f(), any::<bool>(), 0u64..64, 1u64..32).prop_map(|(f, w, o, l)| Do::Aio(f, w, o * 4096, l * 4096)),
        1 => (any::<bool>(), 0u64..500, 1u64..64, any::<bool>()).prop_map(|(w, o, l, d)| Do::Raw(w, o * 4096, l * 4096, d)),
        2 => (0u64..3_000_000_000).prop_map(Do::Sleep),
        1 => (0u64..5_000_000).prop_map(Do::Compute),
    ]
}

struct Program {
    steps: Vec<Do>,
    at: usize,
    fds: [Option<Fd>; 5],
    /// Remaining calls of a step that consists of several calls.
    then: Vec<Call>,
    opened: Option<usize>,
    map: bool,
    aio: Option<crate::AioId>,
    aio_new: bool,
    results: Vec<Ret>,
}

impl Program {
    fn new(steps: Vec<Do>) -> Self {
        Program {
            steps,
            at: 0,
            fds: [None; 5],
            then: Vec::new(),
            opened: None,
            map: false,
            aio: None,
            aio_new: false,
            results: Vec::new(),
        }
    }
    fn next(&mut self, last: Option<Ret>) -> Option<Call> {
        if let Some(r) = last {
            self.results.push(r);
            match (self.opened.take(), r) {
                (Some(i), Ok(fd)) => self.fds[i] = Some(Fd(fd as u32)),
                (_, Ok(n)) if std::mem::take(&mut self.map) => {
                    let map = crate::MapId(n as u32);
                    self.then.push(Call::Unmap { map });
                    self.then.push(Call::Msync {
                        map,
                        off: 0,
                        len: 40_000,
                    });
                    for access in [Access::Write, Access::Read] {
                        self.then.push(Call::Touch {
                            map,
                            off: 4096,
                            len: 60_000,
                            access,
                        });
                    }
                }
                (_, Ok(n)) if std::mem::take(&mut self.aio_new) => {
                    self.aio = Some(crate::AioId(n as u32));
                }
                _ => {}
            }
            self.map = false;
        }
        if let Some(c) = self.then.pop() {
            return Some(c);
        }
        loop {
            let step = self.steps.get(self.at)?.clone();
            self.at += 1;
            if let Some(c) = self.call(step) {
                return Some(c);
            }
        }
    }
    fn call(&mut self, step: Do) -> Option<Call> {
        let path = |f: u8| -> Box<str> {
            match f {
                0..3 => format!("/f{f}").into(),
                _ => format!("/d0/f{f}").into(),
            }
        };
        Some(match step {
            Do::Open(f, o) => {
                if self.fds[f as usize].is_some() {
                    return None;
                }
                self.opened = Some(f as usize);
                let mut flags = OpenFlags::CREATE;
                flags.set(OpenFlags::DIRECT, o & 7 == 7);
                flags.set(OpenFlags::SYNC, o & 24 == 24);
                flags.set(OpenFlags::TRUNC, o & 96 == 96);
                Call::Open {
                    path: path(f),
                    flags,
                }
            }
            Do::Close(f) => Call::Close {
                fd: self.fds[f as usize].take()?,
            },
            Do::Read(f, off, len) => Call::Read {
                fd: self.fds[f as usize]?,
                off,
                len,
            },
            Do::Write(f, off, len) => Call::Write {
                fd: self.fds[f as usize]?,
                off,
                len,
            },
            Do::Append(f, len) => Call::Append {
                fd: self.fds[f as usize]?,
                len,
            },
            Do::Fsync(f, true) => Call::Fdatasync {
                fd: self.fds[f as usize]?,
            },
            Do::Fsync(f, false) => Call::Fsync {
                fd: self.fds[f as usize]?,
            },
            Do::Range(f, off, len, how) => Call::SyncRange {
                fd: self.fds[f as usize]?,
                off,
                len,
                how: SyncRange::from_bits_truncate(how),
            },
            Do::Syncfs => Call::Syncfs,
            Do::Truncate(f, len) => Call::Truncate {
                fd: self.fds[f as usize]?,
                len,
            },
            Do::Fallocate(f, off, len) => Call::Fallocate {
                fd: self.fds[f as usize]?,
                off,
                len,
            },
            Do::Advise(f, w) => Call::Fadvise {
                fd: self.fds[f as usize]?,
                off: 0,
                len: 100_000,
                advice: [
                    Advice::Normal,
                    Advice::Random,
                    Advice::Sequential,
                    Advice::WillNeed,
                    Advice::DontNeed,
                ][w as usize],
            },
            Do::Rename(a, b) => Call::Rename {
                from: path(a),
                to: path(b),
            },
            Do::Unlink(f) => Call::Unlink { path: path(f) },
            Do::Mkdir(f) => Call::Mkdir {
                path: format!("/d{}", f % 2).into(),
            },
            Do::Readdir => Call::Readdir { path: "/".into() },
            Do::Drop => Call::DropCaches,
            Do::Map(f) => {
                self.map = true;
                Call::Map {
                    fd: self.fds[f as usize]?,
                    off: 0,
                    len: 100_000,
                }
            }
            Do::Aio(f, write, off, len) => {
                let fd = self.fds[f as usize]?;
                let Some(aio) = self.aio else {
                    self.aio_new = true;
                    return Some(Call::AioNew { depth: 4 });
                };
                self.then.push(Call::AioReap { aio });
                Call::AioSubmit {
                    aio,
                    fd,
                    write,
                    off,
                    len,
                    tag: 7,
                }
            }
            Do::Raw(false, off, len, direct) => Call::RawRead { off, len, direct },
            // A range at the end of the device, where there are no files.
            Do::Raw(true, off, len, direct) => Call::RawWrite {
                off: off + (200 << 20),
                len,
                direct,
            },
            Do::Sleep(ns) => Call::Sleep(Nanos(ns)),
            Do::Compute(ns) => Call::Compute(Nanos(ns)),
        })
    }
}

fn run(
    c: Config,
    mut disk: Disk,
    programs: Vec<Vec<Do>>,
    requests: usize,
) -> (Machine, Vec<Vec<Ret>>) {
    disk.requests = requests;
    let mut m = Machine::new(c, disk);
    let mut all: Vec<Program> = programs.into_iter().map(Program::new).collect();
    let tasks: Vec<_> = (0..all.len())
        .map(|i| m.task(&format!("program {i}")))
        .collect();
    m.run(&tasks, |i, _, last| all[i].next(last));
    (m, all.into_iter().map(|p| p.results).collect())
}

fn era(n: u8) -> Era {
    let all = [
        Era::K2_6_18,
        Era::K2_6_24,
        Era::K3_4,
        Era::K4_0,
        Era::Mq,
        Era::Mq6_18,
    ];
    all[n as usize % all.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() })]
    /// Checks that every call of every program returns, for any kernel, memory size and disk queue.
    /// Afterwards the counters must agree with a recount.
    #[test]
    fn every_call_returns_and_counters_are_right(
        programs in proptest::collection::vec(proptest::collection::vec(steps(), 1..60), 1..5),
        e in 0u8..5, pages in 64u64..2000, requests in 0usize..12,
    ) {
        let mut c = Config::new(era(e));
        c.cache_bytes = Some(pages * 4096);
        let mut disk = Disk::ssd();
        disk.capacity = 512 << 11;
        let (mut m, _) = run(c, disk, programs, if requests < 2 { 0 } else { requests });
        m.kernel.check();
        m.idle(Nanos::from_secs(100));
        m.kernel.check();
        let left = m.kernel.dirty_pages();
        prop_assert_eq!(left, 0, "all is written in the end");
    }

    /// Checks that programs on a nearly full disk get ENOSPC and no other error.
    #[test]
    fn full_disk_causes_only_enospc(
        programs in proptest::collection::vec(proptest::collection::vec(steps(), 1..60), 1..4),
        e in 0u8..5, room in 0u64..300,
    ) {
        let mut c = Config::new(era(e));
        c.cache_bytes = Some(3000 * 4096);
        let mut disk = Disk::ssd();
        disk.capacity = 160 << 11;
        let mut m = Machine::new(c, disk);
        let filler = m.task("filler");
        let fd = Fd(m.call(filler, Call::Open { path: "/filler".into(), flags: OpenFlags::CREATE }).expect("opens") as u32);
        let len = m.kernel.available_bytes().saturating_sub(room * 4096);
        let r = m.call(filler, Call::Fallocate { fd, off: 0, len });
        if e < 2 {
            // ext3 has no fallocate, so fill the disk by writing.
            prop_assert_eq!(r, Err(Errno::EOPNOTSUPP));
            let r = m.call(filler, Call::Write { fd, off: 0, len: len.max(1) });
            prop_assert!(r.is_ok() || r == Err(Errno::ENOSPC), "{:?}", r);
            m.call(filler, Call::Syncfs).expect("syncs");
        } else {
            prop_assert!(r == Ok(0) || r == Err(Errno::ENOSPC), "{:?}", r);
        }
        let mut all: Vec<Program> = programs.into_iter().map(Program::new).collect();
        let tasks: Vec<_> = (0..all.len()).map(|_| m.task("program")).collect();
        m.run(&tasks, |i, _, last| all[i].next(last));
        m.kernel.check();
        for r in all.iter().flat_map(|p| &p.results) {
            if let Err(e) = r {
                prop_assert!(*e != Errno::EIO, "a full disk is not a broken one");
            }
        }
        prop_assert_eq!(m.kernel.stats().lost_pages, 0, "what was promised was kept");
    }

    /// Checks that the same programs cause the same bios.
    #[test]
    fn runs_are_deterministic(
        programs in proptest::collection::vec(proptest::collection::vec(steps(), 1..40), 1..4),
        e in 0u8..5,
    ) {
        let one = || {
            let mut c = Config::new(era(e));
            c.cache_bytes = Some(500 * 4096);
            let (m, r) = run(c, Disk::hdd(), programs.clone(), 4);
            let log: Vec<_> = m.take_log().iter().map(|l| (l.at, l.bio)).collect();
            (m.now, r, log)
        };
        prop_assert_eq!(one(), one());
    }

    /// Checks that fsync has sent every previously written byte to the disk. The log of bios must
    /// contain each block of the file, written after the last change of its page.
    #[test]
    fn synced_bytes_are_on_the_disk(
        writes in proptest::collection::vec((0u64..200, 1u64..20), 1..30), e in 0u8..5, pause in 0u64..8,
    ) {
        let mut c = Config::new(era(e));
        c.cache_bytes = Some(400 * 4096);
        let mut m = Machine::new(c, Disk::hdd());
        let t = m.task("writer");
        let fd = Fd(m.call(t, Call::Open { path: "/f".into(), flags: OpenFlags::CREATE }).expect("opens") as u32);
        let mut changed = vec![None; 256];
        for (page, n) in &writes {
            // The data are copied after the call begins. A throttled call returns much later.
            let begun = m.now;
            m.call(t, Call::Write { fd, off: page * 4096, len: n * 4096 }).expect("writes");
            for p in *page..page + n {
                changed[p as usize] = Some(begun);
            }
            m.idle(Nanos::from_secs(pause));
        }
        m.call(t, Call::Fsync { fd }).expect("syncs");
        let synced = m.now;
        let log = m.take_log();
        for (page, when) in changed.iter().enumerate() {
            let Some(when) = when else { continue };
            let block = m.kernel.block_of(fd, page as u64).expect("has a block");
            let covered = log.iter().any(|l| {
                let there = l.bio.op == Op::Write
                    && l.bio.sector.0 <= block * 8
                    && l.bio.end().0 >= block * 8 + 8;
                there && l.at >= *when && l.done <= synced
            });
            prop_assert!(covered, "page {} changed at {} is not on the disk", page, when);
        }
    }
}

/// A regression test for an error that `full_disk_causes_only_enospc` found: a direct
/// write checked for only one free block. It then took all blocks that it needed, including blocks
/// reserved for dirty pages.
#[test]
fn direct_write_takes_no_block_reserved_for_a_dirty_page() {
    let mut c = Config::new(Era::K3_4);
    c.cache_bytes = Some(3000 * 4096);
    let mut disk = Disk::ssd();
    disk.capacity = 160 << 11;
    let mut m = Machine::new(c, disk);
    let t = m.task("program");
    let open = |m: &mut Machine, path: &str, direct: bool| {
        let mut flags = OpenFlags::CREATE;
        flags.set(OpenFlags::DIRECT, direct);
        let path = path.into();
        Fd(m.call(t, Call::Open { path, flags }).expect("opens") as u32)
    };
    let fds = ["/filler", "/buffered", "/direct"].map(|path| open(&mut m, path, path == "/direct"));
    let len = m.kernel.available_bytes() - 40 * 4096;
    let (fd, off) = (fds[0], 0);
    assert_eq!(m.call(t, Call::Fallocate { fd, off, len }), Ok(0));
    let (fd, len) = (fds[1], 30 * 4096);
    assert_eq!(m.call(t, Call::Write { fd, off, len }), Ok(len));
    let (fd, len) = (fds[2], 20 * 4096);
    let r = m.call(t, Call::Write { fd, off, len });
    assert_eq!(r, Err(Errno::ENOSPC), "ten are left");
    m.kernel.check();
    m.call(t, Call::Syncfs).expect("syncs");
    m.kernel.check();
    assert_eq!(m.kernel.stats().lost_pages, 0);
}
