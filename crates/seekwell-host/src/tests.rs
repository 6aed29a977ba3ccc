//! Runs scripts on real files in a temporary directory.

use crate::place::{Scratch, held};
use crate::{HostMachine, Options, Ran, run_real, run_script};
use seekwell_core::{Access, Advice, Errno, IoPrio, Nanos, OpenFlags, SyncRange};
use seekwell_workload::{
    AioOp, AioRequest, Context, How, IoContextOf, Machine, Mark, Outcome, Plan,
};
use std::path::Path;
use std::time::Duration;

fn options(dir: &Path) -> Options {
    Options {
        signals: false,
        ..Options::new(dir, 1)
    }
}

/// Runs a script in a directory. The directory must be empty afterwards.
fn run<F, Fut>(name: &str, script: F) -> Ran
where
    F: FnOnce(HostMachine) -> Fut,
    Fut: Future<Output = Outcome>,
{
    let t = Scratch::new(&std::env::temp_dir(), name).expect("a directory");
    let ran = run_script(name, &options(t.path()), script).expect("it begins");
    let left = held(t.path());
    assert_eq!(left, 0, "files are left");
    ran
}

const NEW: OpenFlags = OpenFlags::CREATE;

#[test]
fn every_file_call_works() {
    let ran = run("calls", async |mut m: HostMachine| {
        let ok = |what: &'static str| move || what;
        m.mkdir("d").await.doing(ok("mkdir"))?;
        let f = m.open("d/a", NEW).await.doing(ok("open"))?;
        assert_eq!(m.write(f, 4096, 10_000).await, Ok(10_000));
        assert_eq!(m.append(f, 4).await, Ok(4));
        assert_eq!(
            m.fstat(f).await.map(|s| (s.len, s.dir)),
            Ok((14_100, false))
        );
        assert_eq!(m.read(f, 14_000, 4096).await, Ok(100));
        assert_eq!(m.read(f, 20_000, 4096).await, Ok(0));
        m.fsync(f).await.doing(ok("fsync"))?;
        m.fdatasync(f).await.doing(ok("fdatasync"))?;
        let all = SyncRange::all();
        m.sync_range(f, 0, 8192, all)
            .await
            .doing(ok("sync_range"))?;
        m.truncate(f, 100).await.doing(ok("truncate"))?;
        m.fallocate(f, 0, 65_536).await.doing(ok("fallocate"))?;
        let s = m.stat("d/a").await.doing(ok("stat"))?;
        assert!(s.len == 65_536 && s.allocated >= 65_536);
        m.fadvise(f, 0, 0, Advice::DontNeed)
            .await
            .doing(ok("fadvise"))?;
        m.rename("d/a", "d/b").await.doing(ok("rename"))?;
        let names = m.readdir("d").await.doing(ok("readdir"))?;
        assert_eq!(
            names.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(),
            ["b"]
        );
        assert!(m.readdir(".").await.doing(ok("readdir"))?[0].dir);
        let d = m
            .open("d", OpenFlags::DIRECTORY)
            .await
            .doing(ok("open d"))?;
        m.fsync(d).await.doing(ok("fsync d"))?;
        m.close(d).await.doing(ok("close d"))?;

        let map = m.map(f, 0, 65_536).await.doing(ok("map"))?;
        m.touch(map, 0, 8192, Access::Write)
            .await
            .doing(ok("touch"))?;
        m.touch(map, 8192, 1, Access::Read)
            .await
            .doing(ok("touch"))?;
        m.msync(map, 0, 8192).await.doing(ok("msync"))?;
        assert_eq!(
            m.touch(map, 65_536, 1, Access::Read).await,
            Err(Errno::EINVAL)
        );
        m.unmap(map).await.doing(ok("unmap"))?;
        assert_eq!(m.unmap(map).await, Err(Errno::EBADF));

        m.syncfs().await.doing(ok("syncfs"))?;
        m.drop_caches().await.doing(ok("drop"))?;
        m.close(f).await.doing(ok("close"))?;
        m.unlink("d/b").await.doing(ok("unlink"))?;
        m.rmdir("d").await.doing(ok("rmdir"))
    });
    assert_eq!(ran.stopped, None);
    let t = &ran.record.tasks[0];
    assert_eq!((t.writes, t.written_bytes), (2, 10_004));
    assert_eq!((t.reads, t.read_bytes), (2, 100));
}

/// Returns whether the first page of a file is in the page cache. Returns `None` if the file system
/// does not report it.
fn cached(file: &std::fs::File) -> Option<bool> {
    use rustix::io::{Errno, ReadWriteFlags};
    let mut page = [0; 4096];
    let mut page = [std::io::IoSliceMut::new(&mut page)];
    match rustix::io::preadv2(file, &mut page, 0, ReadWriteFlags::NOWAIT) {
        Ok(_) => Some(true),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

/// A task that drops the caches of other files must not be delayed by a continuous writer.
#[test]
fn dropping_caches_skips_files_that_are_being_written() {
    let ran = run("drop", async |mut m: HostMachine| {
        let path = |name| m.directory().join(name);
        let (clean, written) = (path("clean"), path("written"));
        let f = m.open("clean", NEW).await.doing(|| "open")?;
        let g = m.open("written", NEW).await.doing(|| "open")?;
        let look = |p| cached(&std::fs::File::open(p).expect("there"));
        m.write(f, 0, 1 << 20).await.doing(|| "write")?;
        m.write(g, 0, 1 << 20).await.doing(|| "write")?;
        m.syncfs().await.doing(|| "sync")?;
        m.write(g, 0, 4096).await.doing(|| "write")?;
        m.drop_caches().await.doing(|| "drop")?;
        assert_ne!(look(&written), Some(false), "written since it was synced");
        if look(&clean) != Some(false) {
            println!("skipped: the file system of the temporary directory keeps its pages");
            return Ok(());
        }
        m.fsync(g).await.doing(|| "fsync")?;
        m.drop_caches().await.doing(|| "drop")?;
        assert_eq!(look(&written), Some(false), "synced, if open");
        Ok(())
    });
    assert_eq!(ran.stopped, None);
}

#[test]
fn calls_return_the_kernels_errors() {
    let ran = run("errors", async |mut m: HostMachine| {
        assert_eq!(m.open("x", OpenFlags::empty()).await, Err(Errno::ENOENT));
        assert_eq!(m.open("../x", NEW).await, Err(Errno::EINVAL));
        let f = m.open("x", NEW).await.doing(|| "open")?;
        let again = m.open("x", NEW | OpenFlags::EXCL).await;
        assert_eq!(again, Err(Errno::EEXIST));
        assert_eq!(m.open_device(OpenFlags::RDONLY).await, Err(Errno::ENODEV));
        m.mkdir("d").await.doing(|| "mkdir")?;
        m.rename("x", "d/x").await.doing(|| "rename")?;
        assert_eq!(m.rmdir("d").await, Err(Errno::ENOTEMPTY));
        m.close(f).await.doing(|| "close")?;
        assert_eq!(m.read(f, 0, 1).await, Err(Errno::EBADF));
        let f = m
            .open("a", NEW | OpenFlags::APPEND)
            .await
            .doing(|| "open")?;
        assert_eq!(m.write(f, 0, 1).await, Err(Errno::EINVAL));
        assert_eq!(m.append(f, 7).await, Ok(7));
        if let Ok(f) = m.open("direct", NEW | OpenFlags::DIRECT).await {
            assert_eq!(m.write(f, 0, 8192).await, Ok(8192));
            assert_eq!(m.write(f, 100, 4096).await, Err(Errno::EINVAL));
            assert_eq!(m.read(f, 0, 100).await, Err(Errno::EINVAL));
            assert_eq!(m.read(f, 4096, 8192).await, Ok(4096));
        } else {
            println!("skipped: the temporary directory's file system has no O_DIRECT");
        }
        Ok(())
    });
    assert_eq!(ran.stopped, None);
}

#[test]
fn ring_transfers_the_submitted_requests() {
    let ran = run("ring", async |mut m: HostMachine| {
        let aio = match m.aio(8).await {
            Err(Errno::EPERM | Errno(38)) => {
                println!("skipped: no io_uring here");
                return Ok(());
            }
            r => r.doing(|| "aio")?,
        };
        let fd = m.open("x", NEW).await.doing(|| "open")?;
        let at = |op, k: u64| AioRequest {
            fd,
            op,
            off: k * 4096,
            len: 4096,
            tag: k,
        };
        let writes: Vec<_> = (0..8).map(|k| at(AioOp::Write, k)).collect();
        m.aio_submit(aio, &writes).await.doing(|| "submit")?;
        let more = m.aio_submit(aio, &writes).await;
        assert_eq!(more, Err(Errno::EAGAIN));
        let mut done = Vec::new();
        m.aio_reap(aio, 8, &mut done).await.doing(|| "reap")?;
        let mut tags: Vec<_> = done.iter().map(|d| d.tag).collect();
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..8) && done.iter().all(|d| d.result == Ok(4096)));
        done.clear();
        let mixed = [at(AioOp::Read, 7), at(AioOp::Read, 8), at(AioOp::Fsync, 9)];
        m.aio_submit(aio, &mixed).await.doing(|| "submit")?;
        m.aio_reap(aio, 99, &mut done).await.doing(|| "reap")?;
        done.sort_by_key(|d| d.tag);
        let results: Vec<_> = done.iter().map(|d| d.result).collect();
        assert_eq!(results, [Ok(4096), Ok(0), Ok(0)]);
        m.aio_submit(aio, &writes).await.doing(|| "submit")?;
        m.aio_close(aio).await.doing(|| "close")?;
        assert_eq!(m.aio(0).await, Err(Errno::EINVAL));
        Ok(())
    });
    assert_eq!(ran.stopped, None);
}

#[test]
fn tasks_are_threads_with_their_own_streams_and_measurements() {
    let ran = run("tasks", async |mut m: HostMachine| {
        let (c, b) = (m.channel(4), m.barrier(3));
        let mut joins = Vec::new();
        for name in ["a", "b"] {
            let how = How {
                nice: 5,
                ioprio: IoPrio::be(6),
                io_context: IoContextOf::Share,
                ..How::named(name)
            };
            let task = async move |mut m: HostMachine| -> Outcome {
                use rand::RngCore;
                m.arrive(b).await.doing(|| "meet")?;
                let draw = m.rng().next_u64();
                m.send(c, draw).await.doing(|| "send")?;
                let op = m.op_begin("spin");
                m.compute(Nanos::from_ms(3)).await.doing(|| "compute")?;
                m.op_end(op, 0);
                m.sleep(Nanos::from_ms(2)).await.doing(|| "sleep")
            };
            joins.push(m.spawn(how, task).await.doing(|| "spawn")?);
        }
        m.arrive(b).await.doing(|| "meet")?;
        let mut draws = Vec::new();
        for j in joins {
            draws.push(m.recv(c).await.doing(|| "receive")?);
            m.join(j).await?;
            let twice = m.join(j).await.expect_err("joined before");
            assert_eq!(twice.errno, Errno::EINVAL);
        }
        m.mark(Mark::Phase("end"));
        m.metric("files", "1/s", 2.0, true);
        draws.sort_unstable();
        let named = |n: &str| rand::RngCore::next_u64(&mut seekwell_core::rng::stream(1, n));
        let mut want = [Some(named("main/a")), Some(named("main/b"))];
        want.sort_unstable();
        assert_eq!(draws, want);
        Ok(())
    });
    assert_eq!(ran.stopped, None);
    let r = &ran.record;
    let spin = r.operation("spin").expect("measured");
    assert_eq!(spin.latency.count(), 2);
    assert!(
        spin.latency.min_ns() >= 3_000_000,
        "thread time is not less than wall time"
    );
    assert_eq!(r.tasks.len(), 3);
    assert_eq!(r.marks[0].name, "end");
    assert_eq!(r.metric.as_ref().map(|m| m.value), Some(2.0));
    assert!(r.warnings.iter().any(|w| w.contains("io context")));
    assert!(r.duration_ns >= 5_000_000);
}

#[test]
fn failing_task_stops_the_others_and_keeps_results() {
    let ran = run("failing", async |mut m: HostMachine| {
        let (c, op) = (m.channel(1), m.op_begin("before"));
        m.op_end(op, 0);
        let bad = async |mut m: HostMachine| -> Outcome {
            m.open("nowhere/x", NEW).await.doing(|| "open nowhere/x")?;
            Ok(())
        };
        m.spawn(How::named("bad"), bad).await.doing(|| "spawn")?;
        let got = m.recv(c).await;
        assert_eq!(got, Err(Errno::ECANCELED));
        let f = m.open("y", NEW).await;
        assert_eq!(f, Err(Errno::ECANCELED));
        got.map(|_| ()).doing(|| "receive")
    });
    let why = ran.stopped.expect("it failed");
    assert_eq!(
        why,
        "main/bad: open nowhere/x: no such file or directory (ENOENT)"
    );
    assert_eq!(
        ran.record.operation("before").map(|o| o.latency.count()),
        Some(1)
    );
}

#[test]
fn panic_or_time_limit_ends_a_run_cleanly() {
    let ran = run("panic", async |mut m: HostMachine| {
        m.open("x", NEW).await.doing(|| "open")?;
        panic!("a bug in a script");
    });
    let why = ran.stopped.expect("it broke off");
    assert!(why.contains("a bug in a script"), "{why}");

    let t = Scratch::new(&std::env::temp_dir(), "limit").expect("a directory");
    let endless = async |mut m: HostMachine| -> Outcome {
        let f = m.open("x", NEW).await.doing(|| "open")?;
        loop {
            let op = m.op_begin("write");
            m.write(f, 0, 4096).await.doing(|| "write")?;
            m.op_end(op, 4096);
            m.sleep(Nanos::from_ms(1)).await.doing(|| "sleep")?;
        }
    };
    // How much is written within a limit depends on the load of the machine.
    let written = [50, 500, 5_000, 50_000].into_iter().any(|limit_ms| {
        let o = Options {
            limit: Some(Duration::from_millis(limit_ms)),
            ..options(t.path())
        };
        let ran = run_script("limit", &o, endless).expect("it begins");
        assert_eq!(ran.stopped.as_deref(), Some("stopped at the time limit"));
        assert_eq!(held(t.path()), 0);
        let write = ran.record.operation("write");
        write.is_some_and(|w| w.latency.count() > 5)
    });
    assert!(written, "what was done before the limit is told");
}

#[test]
fn vanished_files_fail_the_task_but_not_the_clean_up() {
    let ran = run("vanish", async |mut m: HostMachine| {
        let f = m.open("x", NEW).await.doing(|| "open")?;
        m.write(f, 0, 10).await.doing(|| "write")?;
        m.unlink("x").await.doing(|| "unlink")?;
        // The descriptor is still open, but the name no longer exists.
        assert_eq!(m.read(f, 0, 10).await, Ok(10));
        m.stat("x").await.doing(|| "stat x")?;
        Ok(())
    });
    assert_eq!(
        ran.stopped.as_deref(),
        Some("main: stat x: no such file or directory (ENOENT)")
    );
}

/// A file system of 4 MB for a test. Dropping it removes the file system.
struct Small(Scratch);

impl Small {
    fn new() -> Option<Self> {
        let t = Scratch::new(&std::env::temp_dir(), "small").ok()?;
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(t.path())
            .output();
        mount.is_ok_and(|o| o.status.success()).then_some(Small(t))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let out = std::process::Command::new("umount")
            .arg(self.0.path())
            .output();
        assert!(out.is_ok_and(|o| o.status.success()), "unmounted");
    }
}

#[test]
fn full_disk_keeps_results_and_removes_files() {
    let Some(small) = Small::new() else {
        println!("skipped: mounting a small file system needs root");
        return;
    };
    let fill = async |mut m: HostMachine| -> Outcome {
        let f = m.open("x", NEW).await.doing(|| "open")?;
        for k in 0u64.. {
            let op = m.op_begin("write");
            let n = m.write(f, k << 20, 1 << 20).await;
            n.doing(|| format!("write 1 MiB at {k} MiB of x"))?;
            m.op_end(op, 1 << 20);
        }
        Ok(())
    };
    let ran = run_script("full", &options(small.0.path()), fill).expect("it begins");
    let why = ran.stopped.expect("full");
    assert!(
        why.ends_with("of x: no space left on device (ENOSPC)"),
        "{why}"
    );
    assert!(
        ran.record
            .operation("write")
            .is_some_and(|w| w.latency.count() >= 3)
    );
    assert_eq!(std::fs::read_dir(small.0.path()).expect("there").count(), 0);

    let plan = Plan::new("fs-mark", &[]).expect("a workload");
    let e = run_real(&plan, &options(small.0.path())).expect_err("too small");
    assert!(
        e.to_string().contains("MB are free, and fs-mark may need"),
        "{e}"
    );
}

#[test]
fn registered_workload_runs_on_the_host() {
    let t = Scratch::new(&std::env::temp_dir(), "fsmark").expect("a directory");
    let given = [("files", "20"), ("size", "16k")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let plan = Plan::new("fs-mark", &given).expect("good parameters");
    let ran = run_real(&plan, &options(t.path())).expect("it begins");
    assert_eq!(ran.stopped, None);
    let r = &ran.record;
    assert!(r.metric.as_ref().is_some_and(|m| m.value > 0.0));
    assert_eq!(
        (r.substrate.as_str(), r.workload.as_str()),
        ("host", "fs-mark")
    );
    assert!(!r.scheduler.name.is_empty() && !r.device.name.is_empty());
    println!("{} on {}", r.scheduler.name, r.device.name);
    assert_eq!(held(t.path()), 0);
}
