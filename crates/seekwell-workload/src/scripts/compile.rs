//! A timed build of a program: parallel compile jobs, then a link.
//!
//! A compile job reads a source file and its headers, which are in the page cache after unpacking.
//! It computes for a lognormally distributed time. Then it writes an object file under a temporary
//! name and renames it, and writes the list of dependencies. The link reads all object files and
//! writes the program. Nothing is synced. The script leaves out the partial links in the
//! directories of the Linux kernel, which write the object files a second time.

use super::common::*;
use crate::fail::{Context, Outcome};
use crate::machine::{How, Machine};
use crate::note::Mark;
use crate::params::{Kind, Params, param, profile};
use crate::row::{Needs, Workload, any};
use seekwell_core::{NSEC_PER_SEC, Nanos, OpenFlags};

/// The workload's entry in the registry.
pub const WORKLOAD: Workload = Workload {
    name: "compile",
    summary: "a timed build (Linux kernel, PHP)",
    metric: "seconds, lower is better",
    stresses: "CPU; the disk has 2 to 4 MB/s of writeback (no effect expected unless cold)",
    source: "Linux 3.1 defconfig and PHP 5.2.9, make -j; pts/build-linux-kernel-1.3.0, pts/build-php-1.3.0",
    #[rustfmt::skip]
    params: &[
        param("files", Kind::Count(1, 1_000_000), "2200", "number of files to compile"),
        param("jobs", Kind::Count(0, 1024), "0",
            "number of parallel compile jobs (make -j); 0: twice the number of CPUs"),
        param("cpu", Kind::Time(0, 3600 * NSEC_PER_SEC), "300ms",
            "CPU time per file, mean of a lognormal distribution; from 329 s for the kernel on 2 cores"),
        param("headers", Kind::Count(0, 1_000_000), "2000",
            "number of headers in the project; each file reads 50 to 200 of them"),
        param("cold", Kind::Flag, "no", "drop the page cache before the build"),
    ],
    #[rustfmt::skip]
    profiles: &[
        profile("kernel", "Linux 3.1, x86_64 defconfig", &[]),
        profile("php", "PHP 5.2.9", &[("files", "400"), ("cpu", "460ms"), ("headers", "400")]),
    ],
    needs: Needs::Directory,
    space: |p| p.int("files") * 250_000 + p.int("headers") * 12_000 + (32 << 20),
    check: any,
};

const CALL: u32 = 64 << 10;
const PROGRAM: u64 = 20 << 20;

#[derive(Clone)]
struct Build {
    dir: String,
    headers: u64,
    cpu: Nanos,
    next: Shared<u64>,
    files: u64,
}

/// Runs the workload.
pub async fn run<M: Machine>(m: &mut M, p: &Params, dir: &str) -> Outcome {
    let b = Build {
        dir: dir.to_owned(),
        headers: p.int("headers"),
        cpu: p.time("cpu"),
        next: Shared::new(0),
        files: p.int("files"),
    };
    m.mark(Mark::Phase("unpack"));
    for h in 0..b.headers {
        let size = lognormal(m, 4e3, 9e3) as u64 + 1;
        lay_out(m, &format!("{dir}/h{h}.h"), size).await?;
    }
    for f in 0..b.files {
        let size = lognormal(m, 10e3, 20e3) as u64 + 1;
        lay_out(m, &format!("{dir}/f{f}.c"), size).await?;
    }
    if p.flag("cold") {
        m.syncfs().await.doing(|| "sync")?;
        m.drop_caches().await.doing(|| "drop caches")?;
    }
    m.mark(Mark::ClockStart);
    let start = m.now();
    let jobs = match p.int("jobs") {
        0 => u64::from(m.facts().cpus) * 2,
        n => n,
    };
    let mut group = Group::new();
    for j in 0..jobs {
        let b = b.clone();
        let how = How::named(format!("job{j}"));
        group.spawn(m, how, move |m| job(m, b)).await?;
    }
    group.join(m).await?;
    m.mark(Mark::Phase("link"));
    for f in 0..b.files {
        let path = format!("{dir}/f{f}.o");
        let fd = open(m, &path, OpenFlags::RDONLY).await?;
        read_all(m, fd, CALL, &path).await?;
        close(m, fd, &path).await?;
    }
    let path = format!("{dir}/program");
    let fd = open(m, &path, FRESH).await?;
    write_all(m, fd, PROGRAM, CALL, &path).await?;
    close(m, fd, &path).await?;
    m.counts("compile");
    m.metric("build", "s", seconds(m, start), false);
    Ok(())
}

async fn job<M: Machine>(mut m: M, b: Build) -> Outcome {
    let m = &mut m;
    let take = |n: &mut u64| {
        *n += 1;
        *n - 1
    };
    loop {
        let f = b.next.with(take);
        if f >= b.files {
            return Ok(());
        }
        let op = m.op_begin("compile");
        read_file(m, &format!("{}/f{f}.c", b.dir)).await?;
        if b.headers > 0 {
            for _ in 0..uniform(m, 50, 200) {
                let h = uniform(m, 0, b.headers - 1);
                read_file(m, &format!("{}/h{h}.h", b.dir)).await?;
            }
        }
        // The parameter is the mean. The median is four fifths of the mean.
        let ns = lognormal(m, b.cpu.0 as f64 * 0.8, b.cpu.0 as f64);
        m.compute(Nanos(ns as u64)).await.doing(|| "compute")?;
        let size = uniform(m, 10_000, 200_000);
        let (tmp, path) = (format!("{}/f{f}.o.tmp", b.dir), format!("{}/f{f}.o", b.dir));
        let fd = open(m, &tmp, FRESH).await?;
        write_all(m, fd, size, CALL, &tmp).await?;
        close(m, fd, &tmp).await?;
        m.rename(&tmp, &path)
            .await
            .doing(|| format!("rename {tmp}"))?;
        // A file like ".o.d" or ".o.cmd", with one line per header.
        let dep = format!("{}/f{f}.d", b.dir);
        let fd = open(m, &dep, FRESH).await?;
        let lines = uniform(m, 10_000, 50_000);
        write_all(m, fd, lines, CALL, &dep).await?;
        close(m, fd, &dep).await?;
        m.op_end(op, size);
    }
}

async fn read_file<M: Machine>(m: &mut M, path: &str) -> Outcome {
    let fd = open(m, path, OpenFlags::RDONLY).await?;
    read_all(m, fd, CALL, path).await?;
    close(m, fd, path).await
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    #[test]
    fn every_file_is_compiled_once_and_linked() {
        let t = Trial::run("compile", &[("files", "100"), ("headers", "60")]);
        assert_eq!(t.ops("compile"), 100);
        assert_eq!(t.calls("rename"), 100);
        assert_eq!(t.tasks(), 9, "twice four CPUs, and make");
        let links = t.calls_on("open", ".o") - t.calls_on("open", ".o.tmp");
        assert_eq!(links, 100);
        assert_eq!(t.calls_on("open", ".d"), 100, "lists of dependencies");
        assert_eq!(t.left_over(), 0);
        // 100 files of 0.3 s each in 8 jobs. The jobs do not compete for cores on the test machine.
        assert!((3.0..6.0).contains(&t.metric()), "{}", t.metric());
    }
}
