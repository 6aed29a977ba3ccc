//! Compares requests and sectors of elementary operations with those of a running 6.18 kernel,
//! counted with its tracepoints.

use super::disk::{Disk, Line};
use super::machine::{Machine, free_cpu};
use crate::{Call, Fd};
use seekwell_core::{Era, Flags, Nanos, Op, OpenFlags, TaskId};

const FACTS: &str = include_str!("../../tests/facts/ext4-6.18.toml");

/// The requests that an operation caused on the disk.
#[derive(Default, Debug)]
struct Got {
    data_sync: (u64, u64),
    data_async: (u64, u64),
    journal: (u64, u64),
    metadata: (u64, u64),
    read: (u64, u64),
    flush: u64,
}

/// Counts requests: bios are merged within their plugs, as a queue does, and split at 1280 KiB and
/// at 128 list entries.
fn count(log: &[Line], meta_end: u64) -> Got {
    let mut g = Got::default();
    let mut last: Option<(&Line, u64)> = None;
    for l in log {
        let b = &l.bio;
        g.flush += match b.op {
            Op::Flush => 1,
            _ if b.flags.contains(Flags::PREFLUSH | Flags::FUA) => 2,
            _ => 0,
        };
        if b.op == Op::Flush {
            last = None;
            continue;
        }
        let kind = match (b.op, b.task) {
            (Op::Read, _) => &mut g.read,
            (_, TaskId(2)) => &mut g.journal,
            _ if b.sector.0 < meta_end => &mut g.metadata,
            _ if b.flags.contains(Flags::SYNC) => &mut g.data_sync,
            _ => &mut g.data_async,
        };
        let n = u64::from(b.sectors.0);
        let most = 2560.min(128 * u64::from(b.segment));
        let joins = last.is_some_and(|(p, sum)| {
            let same = p.bio.task == b.task && p.at == l.at && p.bio.flags == b.flags;
            same && p.bio.end() == b.sector && sum + n <= most
        });
        if joins {
            last = last.map(|(_, sum)| (l, sum + n));
        } else {
            kind.0 += n.div_ceil(most);
            last = Some((l, n));
        }
        kind.1 += n;
    }
    g
}

fn open(m: &mut Machine, t: TaskId, path: &str, flags: OpenFlags) -> Fd {
    let flags = flags | OpenFlags::CREATE;
    Fd(m.call(
        t,
        Call::Open {
            path: path.into(),
            flags,
        },
    )
    .expect("opens") as u32)
}

/// Performs the operation that the fact describes, on a prepared machine.
fn perform(name: &str, m: &mut Machine, t: TaskId) {
    let none = OpenFlags::empty();
    let len = |n: &str| -> u64 {
        let digits: String = n.chars().filter(char::is_ascii_digit).collect();
        let unit = if n.contains('m') { 1 << 20 } else { 1 << 10 };
        digits.parse::<u64>().expect("a length") * unit
    };
    let parts: Vec<&str> = name.split('-').collect();
    let write = |m: &mut Machine, fd, off, len| {
        m.call(t, Call::Write { fd, off, len }).expect("writes");
    };
    match parts[..] {
        ["create", "write", n, end] => {
            let fd = open(m, t, "/d/new", none);
            write(m, fd, 0, len(n));
            if end == "fsync" {
                m.call(t, Call::Fsync { fd }).expect("syncs");
            }
            m.call(t, Call::Close { fd }).expect("closes");
        }
        [what @ ("overwrite" | "append"), flag @ ("osync" | "odsync")] => {
            let flags = [OpenFlags::SYNC, OpenFlags::DSYNC][usize::from(flag == "odsync")];
            let fd = open(m, t, "/d/old", flags);
            write(m, fd, if what == "append" { 4 << 20 } else { 0 }, 4096);
        }
        ["sparse", ..] => {
            let fd = open(m, t, "/d/new", none);
            for i in 0..3 {
                write(m, fd, i << 20, 4096);
            }
            m.call(t, Call::Fsync { fd }).expect("syncs");
        }
        ["truncate", "down", _] => {
            let fd = open(m, t, "/d/old", none);
            m.call(t, Call::Truncate { fd, len: 1 << 20 })
                .expect("cuts");
            m.call(t, Call::Fsync { fd }).expect("syncs");
        }
        ["fallocate", n, _] => {
            let fd = open(m, t, "/d/new", none);
            let (off, len) = (0, len(n));
            m.call(t, Call::Fallocate { fd, off, len })
                .expect("allocates");
            m.call(t, Call::Fsync { fd }).expect("syncs");
        }
        ["prealloc", ..] => {
            let fd = open(m, t, "/d/pre", none);
            write(m, fd, 8192, 4096);
            m.call(t, Call::Fdatasync { fd }).expect("syncs");
        }
        ["replace", ..] => {
            let fd = open(m, t, "/d/tmp", none);
            write(m, fd, 0, 65_536);
            m.call(t, Call::Close { fd }).expect("closes");
            let (from, to) = ("/d/tmp".into(), "/d/small".into());
            m.call(t, Call::Rename { from, to }).expect("renames");
        }
        ["twice", ..] => {
            let fd = open(m, t, "/d/old", none);
            for i in 0..2 {
                write(m, fd, (4 << 20) + i * 4096, 4096);
                m.call(t, Call::Fdatasync { fd }).expect("syncs");
            }
        }
        ["unlink", "big", _] => {
            let path = "/d/big".into();
            m.call(t, Call::Unlink { path }).expect("unlinks");
            m.call(t, Call::Syncfs).expect("syncs");
        }
        [what @ ("create" | "rename"), "fsync", "dir"] => {
            if what == "create" {
                open(m, t, "/d/new", none);
            } else {
                let (from, to) = ("/d/small".into(), "/d/other".into());
                m.call(t, Call::Rename { from, to }).expect("renames");
            }
            m.call(t, Call::FsyncDir { path: "/d".into() })
                .expect("syncs");
        }
        [what @ ("overwrite" | "append"), n, how] => {
            let fd = open(m, t, "/d/old", none);
            let off = if what == "append" { 4 << 20 } else { 0 };
            write(m, fd, off, len(n));
            let c = if how == "fsync" {
                Call::Fsync { fd }
            } else {
                Call::Fdatasync { fd }
            };
            m.call(t, c).expect("syncs");
        }
        ["fsync", "clean"] => {
            let fd = open(m, t, "/d/old", none);
            m.call(t, Call::Fsync { fd }).expect("syncs");
        }
        ["unlink"] => {
            m.call(
                t,
                Call::Unlink {
                    path: "/d/small".into(),
                },
            )
            .expect("unlinks");
        }
        ["mkdir"] => {
            m.call(
                t,
                Call::Mkdir {
                    path: "/d/sub".into(),
                },
            )
            .expect("makes");
        }
        ["rename"] => {
            let (from, to) = ("/d/small".into(), "/d/other".into());
            m.call(t, Call::Rename { from, to }).expect("renames");
        }
        ["hundred", ..] => {
            for i in 0..100 {
                let fd = open(m, t, &format!("/d/h{i}"), none);
                write(m, fd, 0, 4096);
                m.call(t, Call::Close { fd }).expect("closes");
            }
            m.call(t, Call::Syncfs).expect("syncs");
        }
        ["write", n, _] => {
            let fd = open(m, t, "/d/new", none);
            write(m, fd, 0, len(n));
            m.call(t, Call::Fsync { fd }).expect("syncs");
        }
        ["direct", .., what, _] => {
            let mut flags = OpenFlags::DIRECT;
            flags.set(OpenFlags::DSYNC, name.contains("dsync"));
            flags.set(OpenFlags::SYNC, name.contains("direct-sync"));
            let fd = open(m, t, "/d/old", flags);
            let n = len(parts[parts.len() - 1]);
            write(m, fd, if what == "append" { 4 << 20 } else { 0 }, n);
        }
        [_, all, "by", piece, _] => {
            let fd = open(m, t, "/d/new", none);
            for i in 0..len(all) / len(piece) {
                write(m, fd, i * len(piece), len(piece));
            }
            m.call(t, Call::Fsync { fd }).expect("syncs");
        }
        ["truncate", _] => {
            let fd = open(m, t, "/d/old", none);
            m.call(t, Call::Truncate { fd, len: 0 }).expect("cuts");
        }
        ["read", how, ref rest @ ..] => {
            let fd = open(m, t, "/d/big", none);
            let n = len(rest[0]);
            let (from, times) = match (how, n, rest.len()) {
                ("random", ..) => (0, 10),
                (_, _, 4) => (8 << 20, 128),
                (_, 262_144 | 524_288, _) => (0, 16),
                (_, n, _) if n == 1 << 20 => (0, 2),
                _ => (0, (1 << 20) / n),
            };
            for i in 0..times {
                let off = match how {
                    "random" => (i * 7919 + 1000) % 16_000 * 4096,
                    _ => from + i * n,
                };
                m.call(t, Call::Read { fd, off, len: n }).expect("reads");
            }
        }
        _ => panic!("no such operation: {name}"),
    }
}

#[test]
fn elementary_operations_send_the_requests_of_a_6_18_kernel() {
    let facts: toml::Table = FACTS.parse().expect("the file of facts");
    let facts = facts["fact"].as_array().expect("facts");
    let mut bad = Vec::new();
    println!("{:36} {:>22} {:>22}", "requests sectors", "6.18", "model");
    for f in facts {
        let name = f["name"].as_str().expect("a name");
        let mut disk = Disk::ssd();
        disk.capacity = 4 << 21;
        let mut m = Machine::new(free_cpu(Era::Mq6_18), disk);
        let t = m.task("program");
        m.call(t, Call::Mkdir { path: "/d".into() }).expect("makes");
        for (file, len) in [("small", 4096), ("old", 4 << 20), ("big", 64 << 20)] {
            let fd = open(&mut m, t, &format!("/d/{file}"), OpenFlags::empty());
            m.call(t, Call::Write { fd, off: 0, len }).expect("writes");
            m.call(t, Call::Close { fd }).expect("closes");
        }
        if name.starts_with("prealloc") {
            let fd = open(&mut m, t, "/d/pre", OpenFlags::empty());
            let (off, len) = (0, 1 << 20);
            m.call(t, Call::Fallocate { fd, off, len })
                .expect("allocates");
            if name.contains("rewrite") {
                let (off, len) = (8192, 4096);
                m.call(t, Call::Write { fd, off, len }).expect("writes");
            }
        }
        if name.starts_with("rewrite") {
            perform(name, &mut m, t);
        }
        m.call(t, Call::Syncfs).expect("syncs");
        if name.starts_with("read-") {
            let fd = open(&mut m, t, "/d/big", OpenFlags::empty());
            let advice = seekwell_core::Advice::DontNeed;
            m.call(
                t,
                Call::Fadvise {
                    fd,
                    off: 0,
                    len: 0,
                    advice,
                },
            )
            .expect("drops");
        }
        m.idle(Nanos::from_ms(200));
        m.take_log();
        let begun = m.now;
        perform(name, &mut m, t);
        let secs = f.get("seconds").and_then(toml::Value::as_float);
        let secs = secs.unwrap_or(1.0);
        let end = begun + Nanos((secs * 1e9) as u64);
        if m.now < end {
            m.idle(end - m.now);
        }
        // Files start after the metadata of the first flex group.
        let g = count(&m.take_log(), 262_144);
        let mut compare = |what: &str, got: (u64, u64), slack: u64| {
            let Some(v) = f.get(what) else { return };
            let n = |k: &str| {
                v.get(k)
                    .and_then(toml::Value::as_integer)
                    .map_or(0, |n| n as u64)
            };
            let want = (n("requests"), n("sectors"));
            let show = |n: (u64, u64)| format!("{} {}", n.0, n.1);
            println!("{name:24} {what:11} {:>22} {:>22}", show(want), show(got));
            if want.1.abs_diff(got.1) > slack || (slack <= 16 && want.0 != got.0) {
                bad.push(format!("{name} {what}: {got:?}, not {want:?}"));
            }
        };
        compare("data_sync", g.data_sync, 0);
        compare("data_async", g.data_async, 0);
        // On a real kernel, the number of blocks in a commit also varies by one or two.
        compare("journal", g.journal, 16);
        compare("metadata", g.metadata, 24);
        // With large folios, windows are split in other places. The bytes of one window are
        // tolerated.
        compare(
            "read",
            g.read,
            if name.contains("random") { 0 } else { 256 },
        );
        let n = |k: &str| f.get(k).and_then(toml::Value::as_integer);
        for (what, want, got) in [
            ("flush", n("flush"), g.flush),
            (
                "data_async_sectors",
                n("data_async_sectors"),
                g.data_async.1,
            ),
        ] {
            if let Some(want) = want
                && want as u64 != got
            {
                bad.push(format!("{name} {what}: {got}, not {want}"));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(facts.len() >= 40, "the file holds them all");
}
