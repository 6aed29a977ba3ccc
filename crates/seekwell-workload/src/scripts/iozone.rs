//! iozone 3.347: sequential write and read of a file larger than memory.
//!
//! Write, rewrite, and with `test=read` read and reread, in records. The clock of the write stops
//! before the fsync (the original's `-e` is not given), so what is still dirty is not in the time.
//! The reread and the rewrite are done and their figures given, as the original does.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::Machine;
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::registry::{Needs, Workload, any};
use seekwell_core::OpenFlags;

/// Documentation.
pub const WORKLOAD: Workload = Workload {
    name: "iozone",
    summary: "sequential write or read of a file twice the memory",
    metric: "MB/s (MiB, whole KiB/s), higher is better",
    stresses: "one throttled writer; one reader with read-ahead",
    source: "iozone 3.347 -r 64k -s 8192M -i0 [-i1]; pts/iozone-1.7.0",
    params: &[
        param(
            "size",
            Kind::Bytes(4096, 1 << 44),
            "8GiB",
            "bytes of the file (-s)",
        ),
        param(
            "record",
            Kind::Bytes(512, 16 << 20),
            "64KiB",
            "bytes of a call (-r)",
        ),
        param(
            "test",
            Kind::Choice(&["write", "read"]),
            "write",
            "what the metric is of: -i0, or -i0 -i1",
        ),
        param(
            "flush",
            Kind::Flag,
            "no",
            "fsync inside the time of the write (-e of later profiles)",
        ),
    ],
    profiles: &[
        profile("write", "8GB write", &[]),
        profile("read", "8GB read", &[("test", "read")]),
    ],
    needs: Needs::Directory,
    space: |p| p.int("size"),
    check: any,
};

/// The script.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let path = format!("{dir}/iozone.tmp");
    let (size, record) = (p.int("size"), p.small("record"));
    let read = p.word("test") == "read";
    let mut results: Vec<(&'static str, f64)> = Vec::new();
    m.mark(Mark::ClockStart);
    for phase in ["write", "rewrite"] {
        m.mark(Mark::Phase(phase));
        let how = if phase == "write" {
            FRESH
        } else {
            OpenFlags::empty()
        };
        let fd = open(m, &path, how).await?;
        let start = m.now();
        write_all(m, fd, size, record, &path).await?;
        if p.flag("flush") {
            fsync(m, fd, &path).await?;
        }
        results.push((phase, seconds(m, start)));
        if !p.flag("flush") {
            fsync(m, fd, &path).await?;
        }
        close(m, fd, &path).await?;
    }
    for phase in ["read", "reread"] {
        if !read {
            break;
        }
        m.mark(Mark::Phase(phase));
        let fd = open(m, &path, OpenFlags::RDONLY).await?;
        m.fsync(fd).await.doing(|| format!("fsync {path}"))?;
        m.read(fd, 0, 1).await.doing(|| format!("read {path}"))?;
        let start = m.now();
        let n = read_records(m, fd, size, record, &path).await?;
        debug_assert_eq!(n, size);
        results.push((phase, seconds(m, start)));
        close(m, fd, &path).await?;
    }
    // The one the run is about comes first.
    let wanted = if read { 2 } else { 0 };
    results.swap(0, wanted);
    for (phase, secs) in results {
        let kib = rate(size as f64 / 1024.0, secs).floor();
        m.metric(phase, "MB/s", kib / 1024.0, true);
    }
    Ok(())
}

async fn read_records<M: Machine>(
    m: &mut M,
    fd: crate::machine::Fd,
    size: u64,
    record: u32,
    path: &str,
) -> Outcome<u64> {
    let mut off = 0;
    while off < size {
        let len = size_of_call(record, size - off);
        let op = m.op_begin("read");
        let n = m.read(fd, off, len).await;
        let n = n.doing(|| format!("read {len} bytes at {off} of {path}"))?;
        m.op_end(op, u64::from(n));
        if n == 0 {
            break;
        }
        off += u64::from(n);
    }
    Ok(off)
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn records_front_to_back_and_the_flush_outside_the_clock() {
        let t = Trial::run("iozone", &[("size", "16m")]);
        assert_eq!(t.calls("write"), 2 * 256);
        assert_eq!(t.calls("read"), 0);
        assert_eq!(t.before("write", "fsync"), 2);
        // 66.536 us for 64 KiB, whole KiB/s.
        let kib = (64.0 / 66.536e-6f64).floor();
        assert_eq!(t.metric(), kib / 1024.0);
        let e = Trial::run("iozone", &[("size", "16m"), ("flush", "yes")]);
        assert!(e.metric() < t.metric());
    }

    #[test]
    fn the_read_test_writes_twice_and_reads_twice() {
        let t = Trial::run("iozone:profile=read", &[("size", "16m")]);
        assert_eq!(t.calls("write"), 512);
        assert_eq!(t.ops("read"), 512);
        assert_eq!(t.world.measures().metrics()[0].name, "read");
        assert_eq!(t.left_over(), 0);
    }
}
