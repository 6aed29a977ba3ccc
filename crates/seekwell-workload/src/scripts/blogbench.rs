//! Blogbench 1.0: a blog server, writers, a rewriter, commenters and a hundred readers.
//!
//! A blog is a directory of articles and pictures, made from the highest number down; commenters
//! replace comments, readers read a random blog until a file is missing. Files are made under a
//! temporary name and renamed; nothing is ever synced. The pauses the source defines are never
//! taken, here neither. Blog 0 stands for none: who draws it sleeps a second.

use super::common::*;
use crate::fail::{Context, Fail, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param};
use crate::registry::{Needs, Workload, any};
use seekwell_core::{Errno, Instant, NSEC_PER_SEC, Nanos, OpenFlags};

/// Documentation.
pub const WORKLOAD: Workload = Workload {
    name: "blogbench",
    summary: "a blog server: creators against a hundred readers for a fixed time",
    metric: "final score for writes: blogs completed, higher is better",
    stresses: "who is favoured, readers or writeback; metadata; CPU shared by 109 tasks",
    source: "Blogbench 1.0 to 1.1; pts/blogbench-1.0.0",
    params: &[
        param(
            "seconds",
            Kind::Time(NSEC_PER_SEC / 10, 24 * 3600 * NSEC_PER_SEC),
            "300s",
            "how long",
        ),
        param("writers", Kind::Count(0, 1024), "3", "make new blogs (-w)"),
        param(
            "rewriters",
            Kind::Count(0, 1024),
            "1",
            "replace an article, perhaps a picture (-W)",
        ),
        param(
            "commenters",
            Kind::Count(0, 1024),
            "5",
            "replace comments (-c)",
        ),
        param(
            "readers",
            Kind::Count(0, 1024),
            "100",
            "read whole blogs (-r)",
        ),
        param(
            "think",
            Kind::Time(0, NSEC_PER_SEC),
            "20us",
            "CPU time of a file beyond its system calls",
        ),
    ],
    profiles: &[],
    needs: Needs::Directory,
    // A disk of 100 MB/s all the time.
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
    /// Number of the last blog begun.
    last: Shared<u64>,
    written: Shared<u64>,
    read: Shared<u64>,
}

/// The script.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    m.syncfs().await.doing(|| "sync")?;
    m.mark(Mark::ClockStart);
    let job = Job {
        dir: dir.to_owned(),
        end: m.now() + p.time("seconds"),
        think: p.time("think"),
        last: Shared::new(0),
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
                        match kind {
                            "writer" => job.write_blog(&mut m).await?,
                            "rewriter" => job.rewrite(&mut m).await?,
                            "commenter" => job.comment(&mut m).await?,
                            _ => job.read_blog(&mut m).await?,
                        }
                    }
                    Ok(())
                })
                .await?;
        }
    }
    let outcome = group.join(m).await;
    let (w, r) = (job.written.with(|n| *n), job.read.with(|n| *n));
    if w + r > 0 {
        m.metric("final score for writes", "blogs", w as f64, true);
        m.metric("final score for reads", "blogs", r as f64, true);
    }
    outcome
}

impl Job {
    /// A random blog, or none: then a second passes.
    async fn pick<M: Machine>(&self, m: &mut M) -> Outcome<Option<u64>> {
        let last = self.last.with(|n| *n);
        let n = uniform(m, 0, last.max(1) - 1);
        if n > 0 {
            return Ok(Some(n));
        }
        m.sleep(Nanos::from_secs(1)).await.doing(|| "sleep")?;
        Ok(None)
    }

    /// Makes a file under a temporary name, then gives it its own.
    async fn create<M: Machine>(&self, m: &mut M, path: &str, lo: u64, hi: u64) -> Outcome {
        let size = uniform(m, lo, hi);
        let op = m.op_begin("create");
        m.compute(self.think).await.doing(|| "compute")?;
        // Two tasks may make the same file: the original shares the temporary name then.
        let tmp = format!("{path}.tmp");
        let fd = open(m, &tmp, FRESH).await?;
        write_all(m, fd, size, CHUNK, &tmp).await?;
        close(m, fd, &tmp).await?;
        match m.rename(&tmp, path).await {
            // The other task has renamed it already.
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => {
                let what = format!("rename {tmp}");
                return Err(Fail { what, errno });
            }
        }
        m.op_end(op, size);
        Ok(())
    }

    async fn write_blog<M: Machine>(&self, m: &mut M) -> Outcome {
        let n = self.last.with(|n| {
            *n += 1;
            *n
        });
        let blog = format!("{}/blog-{n}", self.dir);
        m.mkdir(&blog).await.doing(|| format!("make {blog}"))?;
        let articles = uniform(m, 1, MOST);
        let pictures = uniform(m, 1, MOST);
        for i in (1..=pictures).rev() {
            self.picture(m, n, i).await?;
        }
        // The first article comes last: until it is there, nobody can read the blog.
        for i in (1..=articles).rev() {
            self.article(m, n, i).await?;
        }
        if m.now() < self.end {
            self.written.with(|w| *w += 1);
        }
        Ok(())
    }
    async fn article<M: Machine>(&self, m: &mut M, n: u64, i: u64) -> Outcome {
        let path = format!("{}/blog-{n}/article-{i}.xml", self.dir);
        self.create(m, &path, 1024, 32_767).await
    }
    async fn picture<M: Machine>(&self, m: &mut M, n: u64, i: u64) -> Outcome {
        let path = format!("{}/blog-{n}/picture-{i}.jpg", self.dir);
        self.create(m, &path, 8192, 65_535).await
    }

    async fn rewrite<M: Machine>(&self, m: &mut M) -> Outcome {
        let Some(n) = self.pick(m).await? else {
            return Ok(());
        };
        if coin(m) {
            let i = uniform(m, 1, MOST);
            self.picture(m, n, i).await?;
        }
        let i = uniform(m, 1, MOST);
        self.article(m, n, i).await
    }

    async fn comment<M: Machine>(&self, m: &mut M) -> Outcome {
        let Some(n) = self.pick(m).await? else {
            return Ok(());
        };
        for i in (1..=uniform(m, 1, MOST)).rev() {
            let path = format!("{}/blog-{n}/comment-{i}.xml", self.dir);
            self.create(m, &path, 2048, 10_239).await?;
        }
        Ok(())
    }

    /// Reads a file; false if it is not there.
    async fn read_file<M: Machine>(&self, m: &mut M, path: &str) -> Outcome<bool> {
        let fd = match m.open(path, OpenFlags::RDONLY).await {
            Err(Errno::ENOENT) => return Ok(false),
            r => r.doing(|| format!("open {path}"))?,
        };
        read_all(m, fd, READ, path).await?;
        close(m, fd, path).await?;
        Ok(true)
    }

    async fn read_blog<M: Machine>(&self, m: &mut M) -> Outcome {
        let Some(n) = self.pick(m).await? else {
            return Ok(());
        };
        let op = m.op_begin("read blog");
        let blog = format!("{}/blog-{n}", self.dir);
        if coin(m) {
            for i in 1.. {
                if !self
                    .read_file(m, &format!("{blog}/comment-{i}.xml"))
                    .await?
                {
                    break;
                }
            }
        }
        for i in 1.. {
            self.read_file(m, &format!("{blog}/picture-{i}.jpg"))
                .await?;
            if !self
                .read_file(m, &format!("{blog}/article-{i}.xml"))
                .await?
            {
                break;
            }
        }
        m.op_end(op, 0);
        self.read.with(|r| *r += 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn blogs_are_of_the_size_the_source_says() {
        let given = [
            ("seconds", "500ms"),
            ("writers", "1"),
            ("rewriters", "0"),
            ("commenters", "0"),
            ("readers", "0"),
        ];
        let t = Trial::run("blogbench", &given);
        let blogs = t.metric();
        assert!(blogs > 60.0);
        let per_blog = t.bytes_written() as f64 / blogs / 1e6;
        assert!(
            (2.4..3.0).contains(&per_blog),
            "2.7 MB a blog, was {per_blog}"
        );
        assert_eq!(t.calls("fsync") + t.calls("fdatasync"), 0);
        assert_eq!(t.before("close", "rename"), t.calls("rename"));
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn readers_find_what_creators_made() {
        let t = Trial::run(
            "blogbench",
            &[("seconds", "1200ms"), ("readers", "10"), ("think", "1ms")],
        );
        assert_eq!(t.tasks(), 20, "3 + 1 + 5 + 10 and the first");
        assert!(t.bytes_read() > 0);
        assert!(t.ops("read blog") > 10);
        assert!(t.calls_on("rename", "comment-") > 0);
    }
}
