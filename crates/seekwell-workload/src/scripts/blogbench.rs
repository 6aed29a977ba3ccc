//! Blogbench 1.0: a blog server with writers, a rewriter, commenters and a hundred readers.
//!
//! A blog is a directory with articles and pictures. Both are made in descending order of their
//! numbers, articles first. Commenters replace comments. Readers read a random blog until an
//! article is missing. Files are made under a temporary name and then renamed. Nothing is synced.
//! The original program defines pauses but does not make them, and this script does not make them
//! either.
//!
//! Blogs are numbered from 0. A task that needs a blog draws a random number that is less than the
//! last assigned number. Readers and the rewriter treat 0 as "no blog" and sleep for a second, but
//! commenters do comment on blog 0. The directory of a blog may not exist yet when its number is
//! assigned, and two tasks may make the same file. A task that finds one of these cases gives up
//! and sleeps for a second, as in the original program. Both scores count operations that end
//! within the given time. Operations that run at the end of this time finish, but do not count.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param};
use crate::row::{Needs, Workload, any};
use seekwell_core::{Errno, Instant, NSEC_PER_SEC, Nanos};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "blogbench",
    summary: "a blog server: a few writers and a hundred readers for a fixed time",
    metric: "final score for writes: blogs completed, higher is better",
    stresses: "preference for readers or for writeback; metadata; a CPU that 109 tasks share",
    source: "Blogbench 1.0 to 1.1; pts/blogbench-1.0.0",
    #[rustfmt::skip]
    params: &[
        param("seconds", Kind::Time(NSEC_PER_SEC / 10, 24 * 3600 * NSEC_PER_SEC), "300s",
            "duration"),
        param("writers", Kind::Count(1, 1024), "3", "number of writers, which make new blogs (-w)"),
        param("rewriters", Kind::Count(0, 1024), "1",
            "number of rewriters, which replace an article and sometimes a picture (-W)"),
        param("commenters", Kind::Count(0, 1024), "5",
            "number of commenters, which replace comments (-c)"),
        param("readers", Kind::Count(0, 1024), "100",
            "number of readers, which read whole blogs (-r)"),
        param("think", Kind::Time(0, NSEC_PER_SEC), "20us",
            "CPU time per file in addition to its system calls; simulation only"),
    ],
    profiles: &[],
    needs: Needs::Directory,
    // The bound is the amount that a disk of 100 MB/s can write in this time.
    space: |p| p.int("seconds") / 10,
    check: any,
};

const CHUNK: u32 = 8 << 10;
const READ: u32 = 64 << 10;
const MOST: u64 = 100;

#[derive(Clone)]
struct Job {
    dir: String,
    end: Instant,
    think: Nanos,
    /// The number of the next blog.
    next: Shared<u64>,
    written: Shared<u64>,
    read: Shared<u64>,
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    m.mark(Mark::Flush);
    m.syncfs().await.doing(|| "sync")?;
    m.mark(Mark::ClockStart);
    let job = Job {
        dir: dir.to_owned(),
        end: m.now() + p.time("seconds"),
        think: p.time("think"),
        next: Shared::new(0),
        written: Shared::new(0),
        read: Shared::new(0),
    };
    let mut group = Group::new();
    for kind in ["writer", "rewriter", "commenter", "reader"] {
        for i in 0..p.int(&format!("{kind}s")) {
            let job = job.clone();
            let how = How::named(format!("{kind}{i}"));
            group
                .spawn(m, how, move |mut m| async move {
                    while m.now() < job.end {
                        let done = match kind {
                            "writer" => job.write_blog(&mut m).await?,
                            "rewriter" => job.rewrite(&mut m).await?,
                            "commenter" => job.comment(&mut m).await?,
                            _ => job.read_blog(&mut m).await?,
                        };
                        if !done {
                            let pause = m.sleep(Nanos::from_secs(1)).await;
                            pause.doing(|| "sleep")?;
                        }
                    }
                    Ok(())
                })
                .await?;
        }
    }
    let outcome = group.join(m).await;
    let (w, r) = (job.written.with(|n| *n), job.read.with(|n| *n));
    // A run without any blog also has a score (0), unless the run was stopped.
    if outcome.is_ok() || w + r > 0 {
        m.counts("write blog");
        m.metric("final score for writes", "blogs", w as f64, true);
        m.metric("final score for reads", "blogs", r as f64, true);
    }
    outcome
}

impl Job {
    /// Returns a random number that is less than that of the last blog begun; 0 if there is no such
    /// blog.
    fn pick<M: Machine>(&self, m: &mut M) -> u64 {
        match self.next.with(|n| *n).saturating_sub(1) {
            0 => 0,
            last => uniform(m, 0, last - 1),
        }
    }

    /// Makes a file under a temporary name, then renames it. Returns false if its directory does
    /// not exist yet. Also returns false if another task made the same file at the same time and
    /// renamed it first, because the temporary file is then gone.
    async fn create<M: Machine>(&self, m: &mut M, path: &str, lo: u64, hi: u64) -> Outcome<bool> {
        let size = uniform(m, lo, hi);
        let op = m.op_begin("create");
        m.compute_if_simulated(self.think)
            .await
            .doing(|| "compute")?;
        // Two tasks can make the same file. They then share the temporary name, as in the original
        // program.
        let tmp = format!("{path}.tmp");
        let fd = match m.open(&tmp, FRESH).await {
            Err(Errno::ENOENT) => return Ok(false),
            r => r.doing(|| format!("open {tmp}"))?,
        };
        write_all(m, fd, size, CHUNK, &tmp).await?;
        close(m, fd, &tmp).await?;
        match m.rename(&tmp, path).await {
            Err(Errno::ENOENT) => {
                for gone in [&tmp, path] {
                    match m.unlink(gone).await {
                        Ok(()) | Err(Errno::ENOENT) => {}
                        r => r.doing(|| format!("remove {gone}"))?,
                    }
                }
                return Ok(false);
            }
            r => r.doing(|| format!("rename {tmp}"))?,
        }
        m.op_end(op, size);
        Ok(true)
    }

    async fn write_blog<M: Machine>(&self, m: &mut M) -> Outcome<bool> {
        let op = m.op_begin("write blog");
        let n = self.next.with(|n| {
            *n += 1;
            *n - 1
        });
        let blog = format!("{}/blog-{n}", self.dir);
        match m.mkdir(&blog).await {
            Ok(()) | Err(Errno::EEXIST) => {}
            r => r.doing(|| format!("make {blog}"))?,
        }
        // The first article is made last. Until it exists, the blog cannot be read.
        for i in (1..=uniform(m, 1, MOST)).rev() {
            if !self.article(m, n, i).await? {
                return Ok(false);
            }
        }
        for i in (1..=uniform(m, 1, MOST)).rev() {
            if !self.picture(m, n, i).await? {
                return Ok(false);
            }
        }
        m.op_end(op, 0);
        if m.now() <= self.end {
            self.written.with(|w| *w += 1);
        }
        Ok(true)
    }
    async fn article<M: Machine>(&self, m: &mut M, n: u64, i: u64) -> Outcome<bool> {
        let path = format!("{}/blog-{n}/article-{i}.xml", self.dir);
        self.create(m, &path, 1024, 32_767).await
    }
    async fn picture<M: Machine>(&self, m: &mut M, n: u64, i: u64) -> Outcome<bool> {
        let path = format!("{}/blog-{n}/picture-{i}.jpg", self.dir);
        self.create(m, &path, 8192, 65_535).await
    }

    async fn rewrite<M: Machine>(&self, m: &mut M) -> Outcome<bool> {
        let n = self.pick(m);
        if n == 0 {
            return Ok(false);
        }
        if coin(m) {
            let i = uniform(m, 1, MOST);
            if !self.picture(m, n, i).await? {
                return Ok(false);
            }
        }
        let i = uniform(m, 1, MOST);
        self.article(m, n, i).await
    }

    async fn comment<M: Machine>(&self, m: &mut M) -> Outcome<bool> {
        let n = self.pick(m);
        for i in (1..=uniform(m, 1, MOST)).rev() {
            let path = format!("{}/blog-{n}/comment-{i}.xml", self.dir);
            if !self.create(m, &path, 2048, 10_239).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn read_blog<M: Machine>(&self, m: &mut M) -> Outcome<bool> {
        let n = self.pick(m);
        if n == 0 {
            return Ok(false);
        }
        let op = m.op_begin("read blog");
        let mut file = Numbered::new(format!("{}/blog-{n}/", self.dir));
        if coin(m) {
            for i in 1.. {
                if !m.read_whole(file.name("comment-", i, ".xml"), READ).await? {
                    break;
                }
            }
        }
        for i in 1.. {
            m.read_whole(file.name("picture-", i, ".jpg"), READ).await?;
            if !m.read_whole(file.name("article-", i, ".xml"), READ).await? {
                break;
            }
        }
        m.op_end(op, 0);
        if m.now() <= self.end {
            self.read.with(|r| *r += 1);
        }
        Ok(true)
    }
}

/// Paths of numbered files in a directory. They share one buffer, because readers use millions of
/// paths.
struct Numbered {
    path: String,
    /// Length of the path of the directory.
    dir: usize,
}

impl Numbered {
    /// Makes the buffer for paths in a directory. The path of the directory must end with '/'.
    fn new(dir: String) -> Self {
        Numbered {
            dir: dir.len(),
            path: dir,
        }
    }
    /// Returns the path of a file by kind and number.
    fn name(&mut self, kind: &str, number: u64, suffix: &str) -> &str {
        self.path.truncate(self.dir);
        self.path.push_str(kind);
        let (mut digits, mut at, mut left) = ([0; 20], 20, number);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.path
            .extend(digits[at..].iter().map(|d| char::from(*d)));
        self.path.push_str(suffix);
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fault, Trial};
    use seekwell_core::Errno;

    /// Runs the workload with writers only, for half a second.
    fn writers(n: &'static str) -> Trial {
        let given = [
            ("seconds", "500ms"),
            ("writers", n),
            ("rewriters", "0"),
            ("commenters", "0"),
            ("readers", "0"),
        ];
        Trial::run("blogbench", &given)
    }

    /// Returns the numbers of a blog's files of one kind, in the order in which they were renamed.
    fn numbers(t: &Trial, blog: &str, kind: &str) -> Vec<u32> {
        let calls = t.world.log().iter().filter(|c| c.name == "rename");
        let mine = calls.filter_map(|c| c.path.strip_prefix(&format!("{blog}/{kind}-")));
        mine.map(|n| n.split('.').next().expect("a number").parse())
            .map(|n| n.expect("a number"))
            .collect()
    }

    #[test]
    fn blog_sizes_match_the_source() {
        let t = writers("1");
        let blogs = t.metric();
        assert!(blogs > 60.0);
        let per_blog = t.bytes_written() as f64 / blogs / 1e6;
        assert!(
            (2.4..3.0).contains(&per_blog),
            "2.7 MB a blog, was {per_blog}"
        );
        let files = t.calls("rename") as f64 / blogs;
        assert!((90.0..112.0).contains(&files), "101 files, were {files}");
        assert_eq!(t.calls("fsync") + t.calls("fdatasync"), 0);
        assert_eq!(t.calls("syncfs"), 1, "before the start");
        assert_eq!(t.before("close", "rename"), t.calls("rename"));
        assert_eq!(t.largest_write(), 8 << 10);
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn articles_precede_pictures_in_descending_numbers() {
        let t = writers("1");
        for blog in ["blog-0", "blog-1", "blog-7"] {
            let blog = format!("seekwell-blogbench/{blog}");
            for kind in ["article", "picture"] {
                let n = numbers(&t, &blog, kind);
                let down: Vec<u32> = (1..=n.len() as u32).rev().collect();
                assert!((1..=100).contains(&n.len()));
                assert_eq!(n, down, "{blog} {kind}");
            }
            let calls = t.world.log();
            let at = |text: &str| calls.iter().position(|c| c.path.contains(text));
            let first = at(&format!("{blog}/article-1.xml")).expect("written");
            assert!(first < at(&format!("{blog}/picture-")).expect("written"));
        }
    }

    #[test]
    fn file_sizes_match_their_kind() {
        let given = [("seconds", "1200ms"), ("readers", "0"), ("think", "500us")];
        let t = Trial::run("blogbench", &given);
        for (kind, lo, hi) in [
            ("article-", 1024, 32_767),
            ("picture-", 8192, 65_535),
            ("comment-", 2048, 10_239),
        ] {
            // Sum up the calls from the creation of one file to the creation of the next.
            let mut sizes: Vec<u64> = Vec::new();
            let mut open: std::collections::BTreeMap<usize, u64> = Default::default();
            for c in t.world.log().iter().filter(|c| c.path.contains(kind)) {
                match c.name {
                    "open" => _ = open.insert(c.task, 0),
                    "write" => *open.entry(c.task).or_default() += c.len,
                    "close" => sizes.extend(open.remove(&c.task)),
                    _ => {}
                }
            }
            let n = sizes.len() as f64;
            assert!(n > 100.0, "{kind} {n}");
            assert!(sizes.iter().all(|s| (lo..=hi).contains(s)), "{kind}");
            let mean = sizes.iter().sum::<u64>() as f64 / n;
            let uniform = (lo + hi) as f64 / 2.0;
            assert!((mean / uniform - 1.0).abs() < 0.15, "{kind}: {mean}");
        }
    }

    #[test]
    fn score_counts_only_blogs_finished_in_time() {
        let t = writers("3");
        let begun = t.calls_on("mkdir", "blog-") as f64;
        assert_eq!(t.ops("write blog") as f64, begun, "all are finished");
        assert_eq!(t.metric(), begun - 3.0, "but one of each writer too late");
    }

    #[test]
    fn numbered_file_names_equal_formatted_ones() {
        let mut file = super::Numbered::new("a/b/".to_owned());
        for n in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX] {
            assert_eq!(file.name("x-", n, ".y"), format!("a/b/x-{n}.y"));
        }
    }

    #[test]
    fn readers_find_the_created_files() {
        let t = Trial::run(
            "blogbench",
            &[("seconds", "1200ms"), ("readers", "10"), ("think", "1ms")],
        );
        assert_eq!(t.tasks(), 20, "3 + 1 + 5 + 10 and the first");
        assert!(t.ops("read blog") > 10);
        let scores = t.world.measures().metrics();
        let late = t.ops("read blog") as f64 - scores[1].value;
        assert!(
            scores[1].value > 0.0 && (1.0..=10.0).contains(&late),
            "{late}"
        );
        assert!(t.calls_on("rename", "comment-") > 0);
        let log = t.world.log();
        // A file is read in calls of 64 KiB, with another call to find its end.
        assert!(log.iter().all(|c| c.name != "read" || c.len == 64 << 10));
        assert_eq!(t.calls("read") as u64, 2 * t.ops("read"));
        // For readers, blog 0 does not exist. Of its files, only comments are read.
        let own = |c: &&crate::testing::Call| c.name == "read" && c.path.contains("blog-0/");
        assert_eq!(log.iter().filter(own).count(), 0);
        assert!(t.calls_on("rename", "blog-0/comment-") > 0);
    }

    #[test]
    fn reader_without_a_blog_sleeps_a_second() {
        // mkdir fails for all blogs, so the directories of the blogs do not exist although their
        // numbers were assigned.
        let given = [("seconds", "2500ms"), ("readers", "7")];
        let t = Trial::with("blogbench", &given, |w| {
            w.fault = Some(Fault {
                call: "mkdir",
                after: 1,
                errno: Errno::EEXIST,
            });
        });
        assert_eq!(t.outcome, Ok(()));
        // Three writers begin blogs 0 to 8 at 0, 1 and 2 s. No file can be made.
        assert_eq!(t.ops("create") + t.ops("write blog"), 0);
        let log = t.world.log();
        for task in 1..=3 + 1 + 5 {
            let calls = log.iter().filter(|c| c.task == task && c.name == "open");
            let at: Vec<u64> = calls.map(|c| c.at.since_start() / 1_000_000_000).collect();
            assert!(
                at.len() <= 3 && at.windows(2).all(|w| w[0] < w[1]),
                "{at:?}"
            );
        }
        let metrics = t.world.measures().metrics();
        assert_eq!(metrics[0].value, 0.0, "no blog, and a result all the same");
        assert!((3.0..3.01).contains(&t.world.elapsed().as_secs_f64()));
    }

    #[test]
    fn concurrent_creations_of_one_file_conflict() {
        let given = [
            ("seconds", "300ms"),
            ("writers", "1"),
            ("commenters", "50"),
            ("readers", "0"),
        ];
        let t = Trial::run("blogbench", &given);
        // At first, fifty tasks comment on blog 0, so files disappear before slower tasks rename
        // them.
        let made = t.ops("create") as usize;
        assert!(made < t.calls("open"), "{made}");
        assert_eq!(t.left_over(), 0);
    }
}
