//! compilebench 0.6, `-i N --makej`: kernel trees are created, compiled and read.
//!
//! The original replays lists of names and sizes of Linux 2.6.20; here sizes come from laws that
//! were fitted to such trees (sources: median 5 KB, mean 11 KB; objects: median 40 KB, mean 95 KB),
//! the same for each tree. Files are made directory by directory, each directory in an order of its
//! own as a hashed directory gives it; objects as `make -j` leaves them, all over the tree. One
//! write of up to 256 KiB a call. Whether the original syncs inside the timing of these phases is
//! not known: `sync` does.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::Machine;
use crate::note::Mark;
use crate::params::{Kind, Params, param};
use crate::registry::{Needs, Workload, any};
use rand::seq::SliceRandom;
use seekwell_core::{NSEC_PER_SEC, Nanos, OpenFlags};

/// Documentation.
pub const WORKLOAD: Workload = Workload {
    name: "compilebench",
    summary: "create kernel trees, compile them, read them",
    metric: "MB/s of each phase, mean over its runs, higher is better",
    stresses: "throttled writers of many small files; metadata reads against writeback; cold trees",
    source: "compilebench 0.6 -i 10 --makej; pts/compilebench-1.0.0",
    params: &[
        param(
            "trees",
            Kind::Count(1, 1000),
            "10",
            "trees created and compiled (-i)",
        ),
        param("reads", Kind::Count(0, 1000), "3", "compiled trees read"),
        param(
            "sources",
            Kind::Count(1, 10_000_000),
            "21000",
            "files of a clean tree",
        ),
        param(
            "objects",
            Kind::Count(0, 10_000_000),
            "7000",
            "files a compilation adds",
        ),
        param(
            "dirs",
            Kind::Count(1, 1_000_000),
            "1300",
            "directories of a tree",
        ),
        param(
            "think",
            Kind::Time(0, NSEC_PER_SEC),
            "60us",
            "CPU time of a file beyond its system calls",
        ),
        param(
            "sync",
            Kind::Flag,
            "no",
            "sync at the end of each tree, inside its time",
        ),
    ],
    profiles: &[],
    needs: Needs::Directory,
    space: |p| p.int("trees") * (p.int("sources") * 15_000 + p.int("objects") * 110_000),
    check: any,
};

const CALL: u32 = 256 << 10;

struct Trees {
    dir: String,
    dirs: u64,
    /// (directory, size), in the order they are made.
    sources: Vec<(u64, u64)>,
    objects: Vec<(u64, u64)>,
    think: Nanos,
    sync: bool,
}

/// The script.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let dirs = p.int("dirs");
    let mut sources: Vec<(u64, u64)> = Vec::new();
    for _ in 0..p.int("sources") {
        let d = uniform(m, 0, dirs - 1);
        sources.push((d, size(m, 5e3, 11e3)));
    }
    sources.sort_by_key(|f| f.0);
    let mut objects: Vec<(u64, u64)> = Vec::new();
    for i in 0..p.int("objects") {
        objects.push((i % dirs, size(m, 40e3, 95e3)));
    }
    objects.shuffle(m.rng());
    let t = Trees {
        dir: dir.to_owned(),
        dirs,
        sources,
        objects,
        think: p.time("think"),
        sync: p.flag("sync"),
    };
    let trees = p.int("trees");
    m.mark(Mark::ClockStart);
    for (phase, runs) in [
        ("initial create", trees),
        ("compile", if p.int("objects") > 0 { trees } else { 0 }),
        ("read compiled tree", p.int("reads").min(trees)),
    ] {
        m.mark(Mark::Phase(phase));
        let (mut sum, mut done) = (0.0, 0);
        let mut outcome = Ok(());
        for n in 0..runs {
            let start = m.now();
            let bytes = match phase {
                "initial create" => t.create(m, n).await,
                "compile" => t.files(m, n, "o", &t.objects).await,
                _ => t.read(m, n).await,
            };
            match bytes {
                Err(e) => {
                    outcome = Err(e);
                    break;
                }
                Ok(bytes) => {
                    if t.sync && phase != "read compiled tree" {
                        m.mark(Mark::Flush);
                        m.syncfs().await.doing(|| "sync")?;
                    }
                    sum += rate(mib(bytes), seconds(m, start));
                    done += 1;
                }
            }
        }
        if done > 0 {
            m.metric(phase, "MB/s", sum / f64::from(done), true);
        }
        outcome?;
    }
    Ok(())
}

fn size<M: Machine>(m: &mut M, median: f64, mean: f64) -> u64 {
    (lognormal(m, median, mean) as u64).clamp(1, 4 << 20)
}

impl Trees {
    fn dir_of(&self, tree: u64, d: u64) -> String {
        // Two levels, about the square root of them in each.
        format!("{}/kernel-{tree}/d{}/s{d}", self.dir, d / 36)
    }

    async fn create<M: Machine>(&self, m: &mut M, tree: u64) -> Outcome<u64> {
        let root = format!("{}/kernel-{tree}", self.dir);
        let mut made = vec![root.clone()];
        made.extend((0..self.dirs.div_ceil(36)).map(|d| format!("{root}/d{d}")));
        made.extend((0..self.dirs).map(|d| self.dir_of(tree, d)));
        for d in made {
            m.mkdir(&d).await.doing(|| format!("make {d}"))?;
        }
        self.files(m, tree, "c", &self.sources).await
    }

    async fn files<M: Machine>(
        &self,
        m: &mut M,
        tree: u64,
        suffix: &str,
        list: &[(u64, u64)],
    ) -> Outcome<u64> {
        let mut bytes = 0;
        for (i, (d, size)) in list.iter().enumerate() {
            let path = format!("{}/f{i}.{suffix}", self.dir_of(tree, *d));
            let op = m.op_begin("create");
            m.compute(self.think).await.doing(|| "compute")?;
            let fd = open(m, &path, FRESH).await?;
            write_all(m, fd, *size, CALL, &path).await?;
            close(m, fd, &path).await?;
            m.op_end(op, *size);
            bytes += size;
        }
        Ok(bytes)
    }

    async fn read<M: Machine>(&self, m: &mut M, tree: u64) -> Outcome<u64> {
        let mut bytes = 0;
        for d in 0..self.dirs {
            let dir = self.dir_of(tree, d);
            for e in m.readdir(&dir).await.doing(|| format!("list {dir}"))? {
                let path = format!("{dir}/{}", e.name);
                m.compute(self.think).await.doing(|| "compute")?;
                let op = m.op_begin("read file");
                let fd = open(m, &path, OpenFlags::RDONLY).await?;
                let n = read_all(m, fd, CALL, &path).await?;
                close(m, fd, &path).await?;
                m.op_end(op, n);
                bytes += n;
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn three_phases_and_every_file_is_read() {
        let given = [
            ("trees", "2"),
            ("reads", "1"),
            ("sources", "2100"),
            ("objects", "700"),
            ("dirs", "130"),
        ];
        let t = Trial::run("compilebench", &given);
        let names: Vec<&str> = t
            .world
            .measures()
            .metrics()
            .iter()
            .map(|m| &*m.name)
            .collect();
        assert_eq!(names, ["initial create", "compile", "read compiled tree"]);
        assert_eq!(t.ops("create"), 2 * 2800);
        assert_eq!(t.ops("read file"), 2800);
        assert_eq!(t.calls("syncfs"), 0);
        // Laws: 11 KB and 95 KB in the mean.
        let of = |s: &str| {
            let all = t.ranges("write", s);
            all.iter().map(|r| r.1).sum::<u64>() as f64 / 2.0
        };
        let (c, o) = (of(".c") / 2100.0, of(".o") / 700.0);
        assert!((10e3..12.5e3).contains(&c), "{c}");
        assert!((80e3..110e3).contains(&o), "{o}");
        assert_eq!(t.left_over(), 0);
    }
}
