//! compilebench 0.6 with `-i N --makej`: it creates, compiles, reads and removes kernel trees.
//!
//! The original program replays lists of names and sizes of Linux 2.6.20. This script draws sizes
//! from distributions that are fitted to such trees (sources: median 5 KB, mean 11 KB; objects:
//! median 40 KB, mean 95 KB). The seed of the original program is fixed. Therefore the lists and
//! random decisions come from a separate generator that does not depend on the seed of the run. A
//! write call has up to 256 KiB.
//!
//! Phases, in the order of the original program:
//! - A tree is made in the order of names, listed and removed. All later trees are made in the
//!   order of this listing, which the file system determines. (The original program does the same
//!   with two lists that `--makej` does not use. This script leaves that out.)
//! - *Initial create*: makes trees one after another. A directory is made before its first file.
//! - A sync, which is not measured (`between`).
//! - *Compile*: visits each tree once, in random order. Objects are written in an order like that
//!   of `make -j`, all over the tree.
//! - A sync. The original program then drops all caches, which needs root (`between=drop`).
//! - *Read compiled tree*: reads a random tree three times, possibly the same tree, in listing
//!   order.
//! - Another sync and drop.
//! - *Delete compiled tree*: removes each tree once, in random order.
//!
//! None of these phases has a sync within its measured time. In another mode (`sync`), the original
//! program does sync within the measured time.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{Entry, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param};
use crate::row::{Needs, Workload, any};
use rand::Rng;
use rand::seq::SliceRandom;
use seekwell_core::rng::{Pcg64Mcg, stream};
use seekwell_core::{Errno, NSEC_PER_SEC, Nanos, OpenFlags};
use std::collections::{BTreeMap, BTreeSet};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "compilebench",
    summary: "create, compile, read and remove kernel trees",
    metric: "MB/s (MiB) of creating, compiling and reading, seconds of removing; means over trees",
    stresses: "throttled writers of many small files; metadata reads against writeback; cold trees",
    source: "compilebench 0.6 -i 10 --makej; pts/compilebench-1.0.0",
    #[rustfmt::skip]
    params: &[
        param("trees", Kind::Count(1, 1000), "10",
            "number of trees that are created, compiled and removed (-i)"),
        param("reads", Kind::Count(0, 1000), "3", "number of trees that are read"),
        param("sources", Kind::Count(1, 10_000_000), "21000", "number of files in a clean tree"),
        param("objects", Kind::Count(0, 10_000_000), "7000",
            "number of files that a compilation adds"),
        param("dirs", Kind::Count(1, 1_000_000), "1300", "number of directories in a tree"),
        param("think", Kind::Time(0, NSEC_PER_SEC), "60us",
            "CPU time per file in addition to its system calls; simulation only"),
        param("sync", Kind::Flag, "no", "sync at the end of each tree, within the measured time"),
        param("between", Kind::Choice(&["sync", "drop", "nothing"]), "sync",
            "untimed work between phases: sync; also drop caches after compiling, as the original \
             does as root; or nothing (-n)"),
    ],
    profiles: &[],
    needs: Needs::Directory,
    space: |p| (p.int("trees") + 1) * (p.int("sources") * 15_000 + p.int("objects") * 110_000),
    check: any,
};

const CALL: u32 = 256 << 10;
/// The seed of the original program.
const SEED: u64 = 555;

/// A file of a tree: its directory and path within the tree, and its size.
#[derive(Clone)]
struct File {
    dir: String,
    path: String,
    size: u64,
}

struct Trees {
    dir: String,
    sources: Vec<File>,
    objects: Vec<File>,
    think: Nanos,
    sync: bool,
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let mut rng = stream(SEED, "compilebench");
    let mut t = Trees::new(p, dir, &mut rng);
    m.mark(Mark::Phase("native order"));
    t.take_native_order(m).await?;
    let trees = p.int("trees");
    let all = |rng: &mut Pcg64Mcg| {
        let mut all: Vec<u64> = (0..trees).collect();
        all.shuffle(rng);
        all
    };
    let reads = (0..p.int("reads")).map(|_| rng.random_range(0..trees));
    let reads: Vec<u64> = reads.collect();
    let compiled = match t.objects.is_empty() {
        true => Vec::new(),
        false => all(&mut rng),
    };
    m.counts("create");
    m.mark(Mark::ClockStart);
    for (phase, order) in [
        ("initial create", (0..trees).collect()),
        ("compile", compiled),
        ("read compiled tree", reads),
        ("delete compiled tree", all(&mut rng)),
    ] {
        match phase {
            "initial create" => {}
            "compile" => between(m, p, false).await?,
            _ => between(m, p, true).await?,
        }
        m.mark(Mark::Phase(phase));
        let (mut sum, mut done) = (0.0, 0);
        let mut outcome = Ok(());
        for n in order {
            match t.timed(m, phase, n).await {
                Ok(x) => sum += x,
                Err(e) => {
                    outcome = Err(e);
                    break;
                }
            }
            done += 1;
        }
        if done > 0 {
            let mean = hundredths(sum / f64::from(done));
            match phase {
                "delete compiled tree" => m.metric(phase, "s", mean, false),
                _ => m.metric(phase, "MB/s", mean, true),
            }
        }
        outcome?;
    }
    Ok(())
}

/// Does the work between two phases: nothing, a sync, or a sync and a drop of caches.
async fn between<M: Machine>(m: &mut M, p: &Params, may_drop: bool) -> Outcome {
    let how = p.word("between");
    if how != "nothing" {
        m.mark(Mark::Flush);
        m.syncfs().await.doing(|| "sync")?;
    }
    if how == "drop" && may_drop {
        m.drop_caches().await.doing(|| "drop caches")?;
    }
    Ok(())
}

impl Trees {
    /// Draws the lists of sources and objects.
    fn new(p: &Params, dir: &str, rng: &mut Pcg64Mcg) -> Self {
        let dirs = p.int("dirs");
        let file = |rng: &mut Pcg64Mcg, d: u64, name: String, median, mean| {
            // There are two levels of directories. Each level has about as many entries as the
            // square root of the number of directories.
            let dir = format!("d{}/s{d}", d / 36);
            File {
                path: format!("{dir}/{name}"),
                dir,
                size: (lognormal_of(rng, median, mean) as u64).clamp(1, 4 << 20),
            }
        };
        let sources = (0..p.int("sources")).map(|i| {
            let d = rng.random_range(0..dirs);
            file(rng, d, format!("f{i}.c"), 5e3, 11e3)
        });
        let mut sources: Vec<File> = sources.collect();
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let objects =
            (0..p.int("objects")).map(|i| file(rng, i % dirs, format!("f{i}.o"), 40e3, 95e3));
        let mut objects: Vec<File> = objects.collect();
        objects.shuffle(rng);
        Trees {
            dir: dir.to_owned(),
            sources,
            objects,
            think: p.time("think"),
            sync: p.flag("sync"),
        }
    }

    fn root(&self, tree: u64) -> String {
        format!("{}/kernel-{tree}", self.dir)
    }

    /// Sorts the sources into the listing order of the file system.
    async fn take_native_order<M: Machine>(&mut self, m: &mut M) -> Outcome {
        let root = format!("{}/native-0", self.dir);
        self.files(m, &root, &self.sources).await?;
        let known = self.sources.iter().map(|f| (f.path.clone(), f.clone()));
        let mut known: BTreeMap<String, File> = known.collect();
        let mut native = Vec::with_capacity(self.sources.len());
        for leaf in leaves(m, &root).await? {
            for e in list(m, &leaf).await? {
                let path = format!("{leaf}/{}", e.name);
                native.extend(known.remove(&path[root.len() + 1..]));
            }
        }
        self.sources = native;
        remove(m, &root).await?;
        m.rmdir(&root).await.doing(|| format!("remove {root}"))
    }

    /// Runs a phase on one tree. Returns its rate in MB/s, or the time in seconds for a removal.
    async fn timed<M: Machine>(&self, m: &mut M, phase: &str, n: u64) -> Outcome<f64> {
        let (start, root) = (m.now(), self.root(n));
        let bytes = match phase {
            "initial create" => self.files(m, &root, &self.sources).await?,
            "compile" => self.files(m, &root, &self.objects).await?,
            "read compiled tree" => self.read(m, &root).await?,
            _ => {
                remove(m, &root).await?;
                0
            }
        };
        if self.sync {
            m.mark(Mark::Flush);
            m.syncfs().await.doing(|| "sync")?;
        }
        let secs = seconds(m, start);
        Ok(match phase {
            "delete compiled tree" => secs,
            _ => rate(mib(bytes), secs),
        })
    }

    /// Makes files in the order of the list, and each directory before its first file.
    async fn files<M: Machine>(&self, m: &mut M, root: &str, list: &[File]) -> Outcome<u64> {
        let mut seen = BTreeSet::new();
        make_dir(m, root).await?;
        let mut bytes = 0;
        for f in list {
            if seen.insert(f.dir.as_str()) {
                let (top, _) = f.dir.split_once('/').unwrap_or((&f.dir, ""));
                if seen.insert(top) {
                    make_dir(m, &format!("{root}/{top}")).await?;
                }
                make_dir(m, &format!("{root}/{}", f.dir)).await?;
            }
            let path = format!("{root}/{}", f.path);
            let op = m.op_begin("create");
            m.compute_if_simulated(self.think)
                .await
                .doing(|| "compute")?;
            let fd = open(m, &path, FRESH).await?;
            write_all(m, fd, f.size, CALL, &path).await?;
            close(m, fd, &path).await?;
            m.op_end(op, f.size);
            bytes += f.size;
        }
        Ok(bytes)
    }

    async fn read<M: Machine>(&self, m: &mut M, root: &str) -> Outcome<u64> {
        let mut bytes = 0;
        for leaf in leaves(m, root).await? {
            for e in list(m, &leaf).await? {
                let path = format!("{leaf}/{}", e.name);
                m.compute_if_simulated(self.think)
                    .await
                    .doing(|| "compute")?;
                let op = m.op_begin("read file");
                let fd = open(m, &path, OpenFlags::RDONLY).await?;
                let n = read_to_end(m, fd, CALL, &path).await?;
                close(m, fd, &path).await?;
                m.op_end(op, n);
                bytes += n;
            }
        }
        Ok(bytes)
    }
}

async fn list<M: Machine>(m: &mut M, dir: &str) -> Outcome<Vec<Entry>> {
    m.readdir(dir).await.doing(|| format!("list {dir}"))
}

/// Returns the directories that contain a tree's files, in the listing order of the file system.
async fn leaves<M: Machine>(m: &mut M, root: &str) -> Outcome<Vec<String>> {
    let mut all = Vec::new();
    for top in list(m, root).await? {
        let top = format!("{root}/{}", top.name);
        for e in list(m, &top).await? {
            all.push(format!("{top}/{}", e.name));
        }
    }
    Ok(all)
}

async fn make_dir<M: Machine>(m: &mut M, dir: &str) -> Outcome {
    match m.mkdir(dir).await {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        r => r.doing(|| format!("make {dir}")),
    }
}

/// Removes the contents of a tree from the bottom up. The tree's own directory remains, as in the
/// original program.
async fn remove<M: Machine>(m: &mut M, root: &str) -> Outcome {
    let tops = list(m, root).await?;
    for top in &tops {
        let top = format!("{root}/{}", top.name);
        let subs = list(m, &top).await?;
        for s in &subs {
            let leaf = format!("{top}/{}", s.name);
            for e in list(m, &leaf).await? {
                let path = format!("{leaf}/{}", e.name);
                let op = m.op_begin("unlink");
                m.unlink(&path).await.doing(|| format!("remove {path}"))?;
                m.op_end(op, 0);
            }
        }
        for s in &subs {
            let leaf = format!("{top}/{}", s.name);
            m.rmdir(&leaf).await.doing(|| format!("remove {leaf}"))?;
        }
    }
    for top in &tops {
        let top = format!("{root}/{}", top.name);
        m.rmdir(&top).await.doing(|| format!("remove {top}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    const SMALL: &[(&str, &str)] = &[
        ("trees", "2"),
        ("reads", "1"),
        ("sources", "2100"),
        ("objects", "700"),
        ("dirs", "130"),
    ];

    fn small(more: &[(&'static str, &'static str)]) -> Trial {
        Trial::run("compilebench", &[SMALL, more].concat())
    }

    #[test]
    fn four_phases_run_and_every_file_is_read_and_removed() {
        let t = small(&[]);
        let metrics = t.world.measures().metrics();
        let names: Vec<&str> = metrics.iter().map(|m| &*m.name).collect();
        let phases = [
            "initial create",
            "compile",
            "read compiled tree",
            "delete compiled tree",
        ];
        assert_eq!(names, phases);
        let units: Vec<&str> = metrics.iter().map(|m| &*m.unit).collect();
        assert_eq!(units, ["MB/s", "MB/s", "MB/s", "s"]);
        assert_eq!(t.ops("create"), 2 * 2800, "the native tree is there before");
        assert_eq!(t.ops("read file"), 2800);
        assert_eq!(
            t.ops("unlink"),
            2 * 2800,
            "the native one was removed before"
        );
        // A file takes reads of up to 256 KiB, and another call to find its end.
        assert_eq!(t.calls("read") as u64, t.ops("read") + 2800);
        assert_eq!(t.largest_write(), 256 << 10);
        assert_eq!(t.calls("fsync") + t.calls("fdatasync"), 0);
        // The distributions have means of 11 KB and 95 KB.
        let of = |s: &str| {
            let all = t.ranges("write", "kernel-");
            let log = t.world.log().iter();
            let mine = log.filter(|c| c.name == "write" && c.path.contains("kernel-"));
            assert_eq!(mine.clone().count(), all.len());
            let bytes: u64 = mine.filter(|c| c.path.ends_with(s)).map(|c| c.len).sum();
            bytes as f64 / 2.0
        };
        let (c, o) = (of(".c") / 2100.0, of(".o") / 700.0);
        assert!((10e3..12.5e3).contains(&c), "{c}");
        assert!((80e3..110e3).contains(&o), "{o}");
        // The rate is the MiB of the first tree divided by its time, rounded to two decimals.
        let of_create = metrics[0].value;
        assert_eq!(of_create, (of_create * 100.0).round() / 100.0);
        let marks = |n: &str| t.world.measures().marks().iter().find(|m| m.name == n);
        let at = |n: &str| marks(n).expect("marked").at_ns as f64 / 1e9;
        let secs = at("compile") - at("initial create");
        let mean = 2.0 * of(".c") / f64::from(1 << 20) / secs;
        assert!((of_create / mean - 1.0).abs() < 0.01, "{of_create} {mean}");
        assert_eq!(t.left_over(), 0);
    }

    #[test]
    fn trees_are_created_and_read_in_listing_order() {
        let t = small(&[("reads", "1"), ("objects", "0")]);
        let names = |call: &str, part: &str| -> Vec<String> {
            let calls = t.world.log().iter();
            let on = calls.filter(|c| c.name == call && c.path.contains(part));
            let name = |p: &str| p.split_once(part).expect("there").1.to_owned();
            let mut all: Vec<String> = on.map(|c| name(&c.path)).collect();
            all.dedup();
            all
        };
        let native = names("open", "native-0/");
        let mut sorted = native.clone();
        sorted.sort();
        assert_eq!(native, sorted, "first in the order of names");
        let first = names("open", "kernel-0/");
        assert_ne!(first[..2100], native, "then as listed");
        assert_eq!(first[..2100], names("unlink", "native-0/"));
        assert_eq!(first[..2100], names("open", "kernel-1/")[..2100]);
        let read = [names("read", "kernel-0/"), names("read", "kernel-1/")].concat();
        assert_eq!(read, first[..2100], "one of them is read, in that order");
    }

    #[test]
    fn objects_are_created_in_random_directories() {
        let t = small(&[]);
        let log = t.world.log().iter();
        let opened = log.filter(|c| c.name == "open" && c.path.ends_with(".o"));
        let dirs: Vec<&str> = opened
            .filter_map(|c| c.path.rsplit_once('/').map(|p| p.0))
            .take(700)
            .collect();
        let stays = dirs.windows(2).filter(|w| w[0] == w[1]).count();
        assert!(stays < 20, "{stays} of 699 stay in the directory");
    }

    #[test]
    fn trees_are_compiled_read_and_removed_in_random_order() {
        let more = [
            ("trees", "6"),
            ("reads", "9"),
            ("sources", "20"),
            ("objects", "20"),
            ("dirs", "4"),
        ];
        let t = small(&more);
        let log = t.world.log();
        let order = |call: &str, end: &str| {
            let on = log
                .iter()
                .filter(|c| c.name == call && c.path.ends_with(end));
            let trees = on.filter_map(|c| c.path.split_once("kernel-"));
            let mut all: Vec<u32> = trees
                .filter_map(|(_, rest)| rest.split('/').next()?.parse().ok())
                .collect();
            all.dedup();
            all
        };
        let made = order("write", ".c");
        assert_eq!(made, [0, 1, 2, 3, 4, 5]);
        for call in ["write", "unlink"] {
            let mut trees = order(call, ".o");
            assert_ne!(trees, made, "{call}");
            trees.sort_unstable();
            assert_eq!(trees, made, "{call}: each once");
        }
        // Nine random choices among six trees: some trees are read repeatedly, but not only one
        // tree.
        assert_eq!(t.ops("read file"), 9 * 40);
        let mut read = order("read", "");
        read.sort_unstable();
        read.dedup();
        assert!((3..=6).contains(&read.len()), "{read:?}");
    }

    #[test]
    fn syncs_separate_phases_and_caches_are_dropped_on_request() {
        let count = |more: &[(&'static str, &'static str)]| {
            let t = small(more);
            (t.calls("syncfs"), t.calls("drop_caches"))
        };
        assert_eq!(count(&[]), (3, 0));
        assert_eq!(count(&[("between", "drop")]), (3, 2));
        assert_eq!(count(&[("between", "nothing")]), (0, 0));
        // Two trees are made, two are compiled, one is read, and two are removed.
        assert_eq!(count(&[("between", "nothing"), ("sync", "yes")]), (7, 0));
    }

    #[test]
    fn calls_are_independent_of_the_seed() {
        let of = |seed| {
            let own = |p: &(&str, &str)| (p.0.to_owned(), p.1.to_owned());
            let given: Vec<_> = SMALL.iter().map(own).collect();
            let plan = crate::Plan::new("compilebench", &given).expect("fits");
            let t = Trial::run_plan(plan, |w| *w = crate::testing::World::new(seed));
            t.world.log().to_vec()
        };
        assert!(of(1) == of(2));
    }
}
