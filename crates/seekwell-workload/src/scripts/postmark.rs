//! PostMark 1.51: the small files of a mail server, all in the page cache.
//!
//! The script makes files of uniformly distributed sizes, and then executes transactions. Each
//! transaction reads a whole file or appends to a file, and also creates or removes a file. At the
//! end, the script removes all files. The C library (stdio) combines the program's calls of 512
//! bytes to calls of 4 KiB. The program reads up to the known size of a file, so no call finds the
//! end of the file. There are at most twice the initial number of files. Nothing is synced unless
//! requested.
//!
//! The original program uses its own fixed seed, so every run has the same operations. This script
//! also has the same operations for any seed of the run. The original program prints transactions
//! per second, computed with whole seconds. This script also reports the unrounded rate.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::Machine;
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use rand::Rng;
use seekwell_core::rng::{Pcg64Mcg, stream};
use seekwell_core::{NSEC_PER_SEC, Nanos, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "postmark",
    summary: "small-file transactions of a mail server",
    metric: "transactions/s over whole seconds, higher is better",
    stresses: "CPU and page cache; the disk has only journal commits (no effect expected) unless \
               synced",
    source: "PostMark 1.51; pts/postmark-1.0.0",
    #[rustfmt::skip]
    params: &[
        param("files", Kind::Count(1, 1_000_000), "500",
            "number of files at the start (set number)"),
        param("transactions", Kind::Count(1, 100_000_000), "25000",
            "number of transactions (set transactions)"),
        param("low", Kind::Bytes(1, 1 << 40), "5120", "minimum file size (set size)"),
        param("high", Kind::Bytes(2, 1 << 40), "524288",
            "upper bound of file sizes, exclusive (set size)"),
        param("seed", Kind::Count(0, u64::MAX), "42",
            "seed of the sequence of operations (set seed)"),
        param("think", Kind::Time(0, NSEC_PER_SEC), "50us",
            "CPU time per transaction in addition to its system calls"),
        param("sync", Kind::Count(0, 100_000_000), "0",
            "sync before the measured time and after this many transactions; 0: never, as in the original"),
    ],
    profiles: &[profile(
        "large",
        "ten times the files: their data exceed the background dirty limit of 4 GiB of memory",
        &[("files", "5000")],
    )],
    needs: Needs::Directory,
    space: |p| p.int("files") * 2 * p.int("high"),
    check: |p| {
        if p.int("low") < p.int("high") {
            Ok(())
        } else {
            Err("low must be below high".into())
        }
    },
};

/// Size of the calls that stdio makes, in bytes.
const CALL: u32 = 4096;

struct Mail {
    dir: String,
    rng: Pcg64Mcg,
    low: u64,
    high: u64,
    /// Maximum number of files: twice the initial number.
    room: usize,
    next: u64,
    files: Vec<(u64, u64)>,
    think: Nanos,
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let files = p.int("files");
    let mut mail = Mail {
        dir: dir.to_owned(),
        rng: stream(p.int("seed"), "postmark"),
        low: p.int("low"),
        high: p.int("high"),
        room: files as usize * 2,
        next: 0,
        files: Vec::new(),
        think: p.time("think"),
    };
    m.mark(Mark::Phase("create"));
    for _ in 0..files {
        mail.create(m).await?;
    }
    let every = p.int("sync");
    if every > 0 {
        // Data that were written before do not belong to the transactions.
        sync(m).await?;
    }
    m.mark(Mark::ClockStart);
    let start = m.now();
    let mut done = 0;
    let mut outcome = Ok(());
    for _ in 0..p.int("transactions") {
        let op = m.op_begin("transaction");
        outcome = mail.transaction(m).await;
        if outcome.is_err() {
            break;
        }
        m.op_end(op, 0);
        done += 1;
        if every > 0 && done % every == 0 {
            outcome = sync(m).await;
            if outcome.is_err() {
                break;
            }
        }
    }
    let whole = |t: seekwell_core::Instant| t.since_start() / NSEC_PER_SEC;
    let secs = (whole(m.now()) - whole(start)).max(1);
    if done > 0 {
        m.counts("transaction");
        m.metric("transactions", "transactions/s", (done / secs) as f64, true);
        let exact = rate(done as f64, seconds(m, start));
        m.metric("transactions, unrounded", "transactions/s", exact, true);
    }
    outcome?;
    m.mark(Mark::Phase("delete"));
    while !mail.files.is_empty() {
        mail.delete(m).await?;
    }
    Ok(())
}

/// Writes all dirty data to the disk. The call counts as an operation "sync".
async fn sync<M: Machine>(m: &mut M) -> Outcome {
    m.mark(Mark::Flush);
    let op = m.op_begin("sync");
    m.syncfs().await.doing(|| "sync")?;
    m.op_end(op, 0);
    Ok(())
}

impl Mail {
    fn path(&self, id: u64) -> String {
        format!("{}/{id}", self.dir)
    }
    fn pick(&mut self) -> Option<usize> {
        let n = self.files.len();
        (n > 0).then(|| self.rng.random_range(0..n))
    }
    async fn transaction<M: Machine>(&mut self, m: &mut M) -> Outcome {
        m.compute(self.think).await.doing(|| "compute")?;
        if self.rng.random::<bool>() {
            self.read(m).await?;
        } else {
            self.append(m).await?;
        }
        if self.rng.random::<bool>() {
            self.create(m).await
        } else {
            self.delete(m).await
        }
    }
    async fn create<M: Machine>(&mut self, m: &mut M) -> Outcome {
        if self.files.len() >= self.room {
            return Ok(());
        }
        let (id, size) = (self.next, self.rng.random_range(self.low..self.high));
        self.next += 1;
        let path = self.path(id);
        let op = m.op_begin("create");
        let fd = open(m, &path, FRESH).await?;
        write_all(m, fd, size, CALL, &path).await?;
        close(m, fd, &path).await?;
        m.op_end(op, size);
        self.files.push((id, size));
        Ok(())
    }
    async fn delete<M: Machine>(&mut self, m: &mut M) -> Outcome {
        let Some(i) = self.pick() else {
            return Ok(());
        };
        let (id, _) = self.files.swap_remove(i);
        let path = self.path(id);
        let op = m.op_begin("delete");
        m.unlink(&path).await.doing(|| format!("remove {path}"))?;
        m.op_end(op, 0);
        Ok(())
    }
    async fn read<M: Machine>(&mut self, m: &mut M) -> Outcome {
        let Some(i) = self.pick() else {
            return Ok(());
        };
        let (id, size) = self.files[i];
        let path = self.path(id);
        let fd = open(m, &path, OpenFlags::RDONLY).await?;
        let mut off = 0;
        while off < size {
            let op = m.op_begin("read");
            let n = m.read(fd, off, CALL).await;
            let n = n.doing(|| format!("read {CALL} bytes at {off} of {path}"))?;
            m.op_end(op, u64::from(n));
            off += u64::from(n);
            if n < CALL {
                break;
            }
        }
        close(m, fd, &path).await
    }
    async fn append<M: Machine>(&mut self, m: &mut M) -> Outcome {
        let Some(i) = self.pick() else {
            return Ok(());
        };
        let (id, size) = self.files[i];
        if size >= self.high {
            return Ok(());
        }
        let more = self.rng.random_range(0..self.high - size) + 1;
        let path = self.path(id);
        let fd = open(m, &path, OpenFlags::APPEND).await?;
        let mut left = more;
        while left > 0 {
            let len = size_of_call(CALL, left);
            let op = m.op_begin("append");
            let n = m.append(fd, len).await;
            let n = n.doing(|| format!("append {len} bytes to {path}"))?;
            m.op_end(op, u64::from(n));
            left -= u64::from(n);
        }
        self.files[i].1 = size + more;
        close(m, fd, &path).await
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn counts_match_the_published_sample() {
        // The sample output of the profile has about 12 500 reads and appends, 13 000 creations,
        // and 4 GB in each direction. This test makes a tenth of it.
        let t = Trial::run("postmark", &[("transactions", "2500")]);
        // The initial 500 files are not counted.
        let creates = t.ops("create");
        let reads = t.calls("open") - 500 - creates as usize;
        assert!(
            (2400..=2500).contains(&reads),
            "{reads} files read or appended to"
        );
        assert!(
            (1200..=1300).contains(&creates),
            "half of 2500, was {creates}"
        );
        assert_eq!(t.ops("transaction"), 2500);
        assert_eq!(500 + creates, t.ops("delete"), "all are removed in the end");
        let gb = t.bytes_read() as f64 / 1e9;
        assert!((0.35..0.52).contains(&gb), "read {gb} GB");
        assert_eq!(t.calls("fsync") + t.calls("syncfs"), 0);
        assert_eq!(t.largest_write(), 4096);
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn files_are_read_whole_in_stdio_sized_calls() {
        let given = [("files", "40"), ("transactions", "400"), ("high", "40k")];
        let t = Trial::run("postmark", &given);
        let mut len: std::collections::BTreeMap<&str, u64> = Default::default();
        let (mut got, mut reads, mut sizes) = (0, 0, Vec::new());
        for c in t.world.log() {
            match c.name {
                "open" => (got, reads) = (0, 0),
                "write" | "append" => *len.entry(&*c.path).or_default() += c.len,
                "read" => {
                    assert_eq!((c.off, c.len), (got, 4096));
                    (got, reads) = (got + 4096, reads + 1);
                }
                "close" if reads > 0 => assert_eq!(reads, len[&*c.path].div_ceil(4096)),
                "close" => sizes.push(len[&*c.path]),
                _ => {}
            }
        }
        // Sizes of files that were created and then appended to: at least `low`, and never more
        // than `high`.
        assert!(sizes.iter().all(|s| (5120..=40 << 10).contains(s)));
        assert_eq!(t.bytes_read().div_ceil(4096), t.ops("read"));
    }

    #[test]
    fn number_of_files_never_exceeds_twice_the_initial_number() {
        let t = Trial::run("postmark", &[("files", "3"), ("transactions", "500")]);
        let (mut there, mut most) = (0i32, 0);
        for c in t.world.log() {
            match c.name {
                "write" if c.off == 0 => there += 1,
                "unlink" => there -= 1,
                _ => {}
            }
            most = most.max(there);
        }
        assert_eq!((there, most), (0, 6));
        assert_eq!(
            t.ops("transaction"),
            500,
            "also those that find no room or no file"
        );
    }

    #[test]
    fn transactions_draw_evenly_from_both_pairs_of_operations() {
        let t = Trial::run("postmark", &[("transactions", "2500"), ("high", "6k")]);
        let opened = t.calls("open") as u64;
        let (created, removed) = (t.ops("create"), t.calls("unlink") as u64);
        let read = t.before("open", "read") as u64;
        let appended = t.before("open", "append") as u64;
        assert_eq!(opened, read + appended + 500 + created);
        // The expected numbers are 1250 each, with a standard deviation of 25.
        for n in [read, appended, created] {
            assert!((1150..1350).contains(&n), "{n}");
        }
        assert_eq!(removed, 500 + created);
    }

    #[test]
    fn sync_option_changes_no_other_operation() {
        let plain = Trial::run("postmark", &[("transactions", "300")]);
        let t = Trial::run("postmark", &[("transactions", "300"), ("sync", "100")]);
        assert_eq!((t.calls("syncfs"), t.ops("sync")), (4, 3), "one before");
        assert_eq!(t.bytes_written(), plain.bytes_written());
        assert_eq!(t.ops("transaction"), plain.ops("transaction"));
    }

    #[test]
    fn runs_are_deterministic_and_time_is_in_whole_seconds() {
        let a = Trial::run("postmark", &[("transactions", "300")]);
        let b = Trial::run("postmark", &[("transactions", "300")]);
        assert_eq!(a.bytes_written(), b.bytes_written());
        assert_eq!(a.metric(), 300.0, "less than a second counts as one");
        let c = Trial::run("postmark", &[("transactions", "300"), ("seed", "7")]);
        assert_ne!(a.bytes_written(), c.bytes_written());
        // The run takes slightly more than 3 s, from the first to the fourth second.
        let slow = [("transactions", "300"), ("files", "20"), ("think", "10ms")];
        let d = Trial::run("postmark", &slow);
        let exact = d.world.measures().metrics()[1].value;
        assert!((95.0..100.0).contains(&exact), "{exact}");
        assert_eq!(
            d.metric(),
            100.0,
            "the seconds that the clock shows, no fractions"
        );
    }
}
