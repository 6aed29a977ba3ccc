//! iozone 3.347: sequential write and read of a file that is larger than memory.
//!
//! The script writes and rewrites a file in whole records. With `test=read`, it then reads and
//! rereads the file. A new file is created and closed, and then opened. Before each pass the script
//! syncs, and before a read pass it also reads one byte. The measured time of a write ends before
//! the fsync, because the original program runs without option `-e`. So it does not include data
//! that are still dirty. Rewrite and reread are executed and reported, as in the original program.

use super::common::*;
use crate::fail::{Context, Fail, Outcome};
use crate::machine::{Fd, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use seekwell_core::{Errno, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "iozone",
    summary: "sequential write or read of a file of twice the memory size",
    metric: "MB/s (MiB, whole KiB/s), higher is better",
    stresses: "one throttled writer; one reader with read-ahead",
    source: "iozone 3.347 -r 64k -s 8192M -i0 [-i1]; pts/iozone-1.7.0",
    #[rustfmt::skip]
    params: &[
        param("size", Kind::Bytes(4096, 1 << 44), "8GiB",
            "size of the file, in whole records (-s)"),
        param("record", Kind::Bytes(512, 16 << 20), "64KiB",
            "size of a record, which is one call (-r)"),
        param("test", Kind::Choice(&["write", "read"]), "write",
            "test that gives the metric: -i0, or -i0 -i1"),
        param("flush", Kind::Flag, "no",
            "include an fsync in the measured time of the write (iozone -e, as in later profiles)"),
    ],
    profiles: &[
        profile("write", "8GB write", &[]),
        profile("read", "8GB read", &[("test", "read")]),
    ],
    needs: Needs::Directory,
    space: |p| p.int("size"),
    check: |p| {
        if p.int("record") <= p.int("size") {
            Ok(())
        } else {
            Err("record must not exceed size".into())
        }
    },
};

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let record = p.small("record");
    let job = Job {
        path: format!("{dir}/iozone.tmp"),
        record,
        size: p.int("size") / u64::from(record) * u64::from(record),
        flush: p.flag("flush"),
    };
    let (phases, wanted) = match p.word("test") {
        "read" => (&["write", "rewrite", "read", "reread"][..], "read"),
        _ => (&["write", "rewrite"][..], "write"),
    };
    let mut results: Vec<(&'static str, f64)> = Vec::new();
    let mut outcome = Ok(());
    m.counts(wanted);
    m.mark(Mark::ClockStart);
    for phase in phases {
        m.mark(Mark::Phase(phase));
        match job.pass(m, phase).await {
            Ok(secs) => results.push((phase, secs)),
            Err(e) => {
                outcome = Err(e);
                break;
            }
        }
    }
    // The requested metric comes first.
    results.sort_by_key(|r| r.0 != wanted);
    for (phase, secs) in results {
        let kib = rate(job.size as f64 / 1024.0, secs).floor();
        m.metric(phase, "MB/s", kib / 1024.0, true);
    }
    outcome
}

struct Job {
    path: String,
    record: u32,
    /// Size of the file in bytes; a multiple of the record size.
    size: u64,
    flush: bool,
}

impl Job {
    /// Makes one pass over the file. Returns its time in seconds.
    async fn pass<M: Machine>(&self, m: &mut M, phase: &str) -> Outcome<f64> {
        let path = &self.path;
        let write = phase.ends_with("write");
        if phase == "write" {
            let fd = open(m, path, FRESH).await?;
            close(m, fd, path).await?;
        }
        let how = match write {
            true => OpenFlags::empty(),
            false => OpenFlags::RDONLY,
        };
        let fd = open(m, path, how).await?;
        m.fsync(fd).await.doing(|| format!("fsync {path}"))?;
        if !write {
            m.read(fd, 0, 1).await.doing(|| format!("read {path}"))?;
        }
        let start = m.now();
        if write {
            write_all(m, fd, self.size, self.record, path).await?;
        } else {
            self.read_records(m, fd).await?;
        }
        if write && self.flush {
            fsync(m, fd, path).await?;
        }
        let secs = seconds(m, start);
        if write && !self.flush {
            fsync(m, fd, path).await?;
        }
        close(m, fd, path).await?;
        Ok(secs)
    }

    async fn read_records<M: Machine>(&self, m: &mut M, fd: Fd) -> Outcome {
        let (path, record) = (&self.path, self.record);
        let mut off = 0;
        while off < self.size {
            let op = m.op_begin("read");
            let n = m.read(fd, off, record).await;
            let n = n.doing(|| format!("read {record} bytes at {off} of {path}"))?;
            m.op_end(op, u64::from(n));
            if n == 0 {
                // Another program has truncated the file.
                let what = format!("read {record} bytes at {off} of {path}: the file ends there");
                return Err(Fail {
                    what,
                    errno: Errno::EIO,
                });
            }
            off += u64::from(n);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fault, Trial};
    use seekwell_core::Errno;

    #[test]
    fn records_are_written_in_order_and_timed_with_or_without_flush() {
        let t = Trial::run("iozone", &[("size", "16m")]);
        assert_eq!(t.calls("write"), 2 * 256);
        assert_eq!(t.calls("read"), 0);
        assert_eq!(t.before("write", "fsync"), 2);
        let records: Vec<(u64, u64)> = (0..256).map(|i| (i << 16, 64 << 10)).collect();
        assert_eq!(t.ranges("write", "iozone")[..256], records);
        assert_eq!(t.ranges("write", "iozone")[256..], records);
        // A record of 64 KiB takes 66.536 us. The rate is in whole KiB/s.
        let kib = (64.0 / 66.536e-6f64).floor();
        assert_eq!(t.metric(), kib / 1024.0);
        let e = Trial::run("iozone", &[("size", "16m"), ("flush", "yes")]);
        assert!(e.metric() < t.metric());
        assert_eq!(
            e.calls("fsync"),
            t.calls("fsync"),
            "inside instead of behind"
        );
    }

    #[test]
    fn file_is_created_reopened_and_synced_before_the_clock_starts() {
        let t = Trial::run("iozone", &[("size", "64k")]);
        let write = ["open", "close", "open", "fsync", "write", "fsync", "close"];
        let again = ["open", "fsync", "write", "fsync", "close"];
        assert_eq!(
            t.sequence("iozone.tmp"),
            [&write[..], &again, &["unlink"]].concat()
        );
    }

    #[test]
    fn read_test_writes_twice_and_reads_twice() {
        let t = Trial::run("iozone:profile=read", &[("size", "16m")]);
        assert_eq!(t.calls("write"), 512);
        assert_eq!(t.ops("read"), 512);
        let names: Vec<&str> = t
            .world
            .measures()
            .metrics()
            .iter()
            .map(|m| &*m.name)
            .collect();
        assert_eq!(names[0], "read");
        assert_eq!(names.len(), 4);
        // The first byte, and then all records.
        let reads = t.ranges("read", "iozone");
        assert_eq!(
            (reads[0], reads[1], reads[257]),
            ((0, 1), (0, 65_536), (0, 1))
        );
        assert_eq!(t.metric(), (64.0 / 66.536e-6f64).floor() / 1024.0);
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn only_whole_records_are_written() {
        let t = Trial::run("iozone", &[("size", "200k")]);
        assert_eq!(t.bytes_written(), 2 * (192 << 10));
        let e = crate::Plan::new("iozone:size=4k", &[]).expect_err("less than a record");
        assert!(e.to_string().contains("record must not exceed size"), "{e}");
    }

    #[test]
    fn completed_pass_counts_if_the_next_one_fails() {
        let fault = |w: &mut crate::testing::World| {
            w.fault = Some(Fault {
                call: "write",
                after: 20,
                errno: Errno::ENOSPC,
            });
        };
        let t = Trial::with("iozone", &[("size", "1m")], fault);
        assert!(t.outcome.is_err());
        assert_eq!(t.world.measures().metrics()[0].name, "write");
        assert_eq!(t.world.measures().metrics().len(), 1);
    }
}
