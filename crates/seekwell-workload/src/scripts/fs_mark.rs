//! fs_mark 3.3: creation of files, each with a sync before its close.
//!
//! Each worker makes its files in a directory that all workers share. For each file, it makes a
//! name of 40 characters (16 for the current second, 24 random). Then it calls mkdir for the
//! directory (which usually exists), open, writes of 16 KiB each up to `size` bytes, fsync, and
//! close. The clock of a worker measures this loop, but not the removal of the files. The rate of
//! each worker is rounded to a tenth, and the rates are added. In the original program, the
//! processes report their rates to their parent in the same way.
//!
//! With `-D` and without `-N`, the original program selects the subdirectory by time. It uses the
//! next subdirectory when more than 180 whole seconds have passed. So files are not spread over
//! subdirectories, although the name of the published profile suggests it. This script behaves in
//! the same way.
//!
//! The script leaves out the options `-S 2` to `-S 6`. In the original program, a worker that
//! finishes early removes its files while other workers still write; here, all files are removed at
//! the end.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload};
use seekwell_core::{Errno, NSEC_PER_SEC, Nanos};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "fs-mark",
    summary: "create files, fsync each before closing it",
    metric: "files/s, higher is better (sum over workers)",
    stresses: "the fsync chain: data, journal, flush, commit record, flush; with sync=none dirty throttling",
    source: "fs_mark 3.3; profiles of pts/fs-mark-1.0.0",
    #[rustfmt::skip]
    params: &[
        param("files", Kind::Count(1, 10_000_000), "1000", "number of files per worker (-n)"),
        param("size", Kind::Bytes(1, 1 << 40), "1MiB", "size of a file (-s)"),
        param("workers", Kind::Count(1, 1024), "1", "number of workers (-t)"),
        param("dirs", Kind::Count(0, 10_000), "0",
            "subdirectories; files go to each in turn for 180 s (-D); 0: none, otherwise at least 2"),
        param("sync", Kind::Choice(&["fsync", "none"]), "fsync",
            "fsync before close (-S 1), or not at all (-S 0)"),
        param("think", Kind::Time(0, NSEC_PER_SEC), "0",
            "CPU time per file in addition to its system calls"),
    ],
    #[rustfmt::skip]
    profiles: &[
        profile("1000-files", "1000 Files, 1MB Size", &[]),
        profile("no-sync", "1000 Files, 1MB Size, No Sync/FSync", &[("sync", "none")]),
        profile(
            "4-threads",
            "5000 Files, 1MB Size, 4 Threads",
            &[("files", "5000"), ("workers", "4")],
        ),
        profile(
            "32-dirs",
            "4000 Files, 32 Sub Dirs, 1MB Size",
            &[("files", "4000"), ("dirs", "32")],
        ),
    ],
    needs: Needs::Directory,
    space: |p| {
        let files = p.int("files") * p.int("workers");
        files.saturating_mul(p.int("size").next_multiple_of(4096))
    },
    check: |p| {
        if p.int("dirs") == 1 {
            return Err("dirs must be at least 2 (as for -D), or 0 for none".into());
        }
        Ok(())
    },
};

const CALL: u32 = 16 << 10;
/// The original program uses the next subdirectory after more than this number of whole seconds.
const DIR_SECS: u64 = 180;
/// Characters of the random part of a file name.
const LETTERS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

#[derive(Clone)]
struct Job {
    dir: String,
    files: u64,
    size: u64,
    dirs: u64,
    sync: bool,
    think: Nanos,
    /// Number of files made, and sum of the rates of the workers.
    sum: Shared<(u64, f64)>,
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let job = Job {
        dir: dir.to_owned(),
        files: p.int("files"),
        size: p.int("size"),
        dirs: p.int("dirs"),
        sync: p.word("sync") == "fsync",
        think: p.time("think"),
        sum: Shared::new((0, 0.0)),
    };
    m.mark(Mark::ClockStart);
    let mut group = Group::new();
    for w in 0..p.int("workers") {
        let job = job.clone();
        let name = How::named(format!("worker{w}"));
        group.spawn(m, name, move |m| worker(m, job)).await?;
    }
    let done = group.join(m).await;
    let (made, rate) = job.sum.with(|s| *s);
    if made > 0 {
        // The sum of tenths is rounded, to remove the rounding errors of the additions.
        m.counts("file");
        m.metric("files", "files/s", tenths(rate), true);
    }
    done
}

fn tenths(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

async fn worker<M: Machine>(mut m: M, job: Job) -> Outcome {
    let start = m.now();
    let mut made = 0;
    let done = files(&mut m, &job, &mut made).await;
    let rate = tenths(rate(made as f64, seconds(&m, start)));
    job.sum.with(|s| *s = (s.0 + made, s.1 + rate));
    done
}

async fn files<M: Machine>(m: &mut M, job: &Job, made: &mut u64) -> Outcome {
    // Current subdirectory, and the second in which its use began.
    let (mut sub, mut since) = (0, m.now().since_start() / NSEC_PER_SEC);
    for _ in 0..job.files {
        let file = m.op_begin("file");
        let now = m.now().since_start() / NSEC_PER_SEC;
        let dir = if job.dirs == 0 {
            job.dir.clone()
        } else {
            if now - since > DIR_SECS {
                (sub, since) = ((sub + 1) % job.dirs, now);
            }
            format!("{}/{sub:02x}", job.dir)
        };
        match m.mkdir(&dir).await {
            Ok(()) | Err(Errno::EEXIST) => {}
            r => r.doing(|| format!("make {dir}"))?,
        }
        // 40 characters: 16 for the time with padding, and 24 random characters.
        let mut path = format!("{dir}/{now:~<16x}");
        for _ in 0..24 {
            path.push(char::from(LETTERS[uniform(m, 0, 35) as usize]));
        }
        m.compute(job.think).await.doing(|| "compute")?;
        let create = m.op_begin("create");
        let fd = open(m, &path, FRESH).await?;
        m.op_end(create, 0);
        write_all(m, fd, job.size, CALL, &path).await?;
        if job.sync {
            fsync(m, fd, &path).await?;
        }
        let shut = m.op_begin("close");
        close(m, fd, &path).await?;
        m.op_end(shut, 0);
        m.op_end(file, job.size);
        *made += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;
    use crate::{Kind, Plan, workload};

    #[test]
    fn file_is_opened_written_synced_and_closed() {
        let t = Trial::run("fs-mark", &[("files", "10")]);
        assert_eq!(t.calls("open"), 10);
        assert_eq!(t.calls("write"), 640);
        assert_eq!(t.calls("fsync"), 10);
        assert_eq!(t.bytes_written(), 10 << 20);
        assert_eq!(t.largest_write(), 16 << 10);
        let mut file = vec!["open"];
        file.extend(["write"; 64]);
        file.extend(["fsync", "close"]);
        let calls = t.sequence("~");
        for n in 0..10 {
            assert_eq!(calls[n * 67..][..67], file, "in this order");
        }
        assert!(t.metric() > 0.0);
        assert_eq!(t.left_over(), 0, "the directory is gone");
    }

    #[test]
    fn file_names_have_forty_bytes_and_mkdir_precedes_each_file() {
        let t = Trial::run("fs-mark", &[("files", "20"), ("size", "4k")]);
        let log = t.world.log();
        let opened = log.iter().filter(|c| c.name == "open");
        let mut names: Vec<&str> = opened
            .map(|c| c.path.rsplit_once('/').expect("in a directory").1)
            .collect();
        assert!(names.iter().all(|n| n.len() == 40), "{}", names[0]);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 20);
        // The script makes one call at the start, and then one call before each file.
        assert_eq!(t.calls("mkdir"), 1 + 20);
        assert_eq!(t.before("mkdir", "open"), 20);
    }

    #[test]
    fn profiles_have_the_published_options() {
        let of = |profile: &str| {
            let plan = Plan::new(&format!("fs-mark:profile={profile}"), &[]).expect("fits");
            let p = plan.params();
            let words = ["files", "size", "workers", "dirs", "sync"];
            (words.map(|w| p[w].clone()).join(" "), plan.space() >> 20)
        };
        // The files of the profiles take 1.0, 1.0, 19.5 and 3.9 GiB in total.
        assert_eq!(of("1000-files"), ("1000 1MiB 1 0 fsync".into(), 1000));
        assert_eq!(of("no-sync"), ("1000 1MiB 1 0 none".into(), 1000));
        assert_eq!(of("4-threads"), ("5000 1MiB 4 0 fsync".into(), 20_000));
        assert_eq!(of("32-dirs"), ("4000 1MiB 1 32 fsync".into(), 4000));
    }

    #[test]
    fn sync_none_makes_no_sync_call() {
        let t = Trial::run("fs-mark", &[("files", "5"), ("sync", "none")]);
        assert_eq!(
            t.calls("fsync") + t.calls("fdatasync") + t.calls("syncfs"),
            0
        );
        assert_eq!(t.before("write", "close"), 5);
    }

    #[test]
    fn files_are_per_worker_and_rates_are_summed_in_tenths() {
        let four = Trial::run(
            "fs-mark:profile=4-threads",
            &[("files", "5"), ("size", "16k"), ("think", "9ms")],
        );
        let one = Trial::run(
            "fs-mark",
            &[("files", "5"), ("size", "16k"), ("think", "9ms")],
        );
        assert_eq!(four.calls("fsync"), 20);
        assert_eq!(four.tasks(), 5);
        // 9 ms of CPU time, 1 us each for mkdir, open and close, 17.384 us for a write, and 100 us
        // for a sync.
        let tenth = (10.0f64 / 9.120_384e-3).round() / 10.0;
        assert_eq!(one.metric(), tenth);
        assert_eq!(four.metric(), (tenth * 40.0).round() / 10.0);
    }

    #[test]
    fn subdirectory_changes_after_180_whole_seconds() {
        let slow = [("size", "4k"), ("think", "1s")];
        let of = |files| {
            let given: Vec<_> = [("files", files)].into_iter().chain(slow).collect();
            Trial::run("fs-mark:profile=32-dirs", &given).directories_written()
        };
        // One file takes one second. The 181st file begins at exactly 180 seconds, which is not
        // more than 180.
        assert_eq!(of("50"), 1);
        assert_eq!(of("181"), 1);
        assert_eq!(of("182"), 2);
        let e = Plan::new("fs-mark:dirs=1", &[]).expect_err("as -D refuses");
        assert!(e.to_string().contains("at least 2"), "{e}");
    }

    #[test]
    fn space_of_the_largest_parameters_saturates() {
        let w = workload("fs-mark").expect("it is");
        let most = |name: &str| {
            let p = w.params.iter().find(|p| p.name == name).expect("it is");
            match p.kind {
                Kind::Count(_, hi) | Kind::Bytes(_, hi) => (name.to_owned(), hi.to_string()),
                _ => panic!("a number"),
            }
        };
        let given = ["files", "workers", "size"].map(most);
        let plan = Plan::new("fs-mark", &given).expect("in range");
        assert_eq!(plan.space(), u64::MAX);
    }
}
