//! Tests of the executor with scripts on the raw device.

use super::*;
use crate::compare::run_all;
use crate::setup::Setup;
use rand::RngCore;
use seekwell_core::rng::stream;
use seekwell_core::{Class, Errno, Instant, IoPrio, Nanos, OpenFlags};
use seekwell_workload::{AioOp, AioRequest, Context, How, IoContextOf, Machine, Mark};

fn world(device: &str, scheduler: &str) -> WorldSetup {
    let setup = Setup {
        device: device.to_owned(),
        scheduler: scheduler.to_owned(),
        ..Setup::default()
    };
    WorldSetup::new(setup).expect("a scheduler")
}

const FAST: &str = "constant:depth=4,service_us=100";
const DISK: &str = "hdd:hitachi-7k200";
const DIRECT: OpenFlags = OpenFlags::DIRECT;

fn run<F, Fut>(w: &WorldSetup, script: F) -> Ran
where
    F: FnOnce(SimMachine) -> Fut,
    Fut: Future<Output = Outcome> + 'static,
{
    let mut drive = Drive::open(&w.setup).expect("a device");
    run_script("test", w, &mut drive, script).expect("it runs")
}

/// Runs four readers with separate streams. One more task thinks, sometimes while it holds a lock.
async fn readers(mut m: SimMachine) -> Outcome {
    let (lock, done) = (m.lock(), m.channel(2));
    let names = ["a", "b", "c", "d"];
    for (i, name) in names.into_iter().enumerate() {
        let how = How {
            ioprio: IoPrio {
                class: Class::Be,
                level: i as u8,
            },
            ..How::named(name)
        };
        let task = async move |mut m: SimMachine| -> Outcome {
            let fd = m.open_device(DIRECT).await.doing(|| "open")?;
            for k in 0..50u64 {
                let at = m.rng().next_u64() % 1_000_000 * 4096;
                let op = m.op_begin("read");
                m.read(fd, at, 4096).await.doing(|| "read")?;
                m.op_end(op, 4096);
                if k % 10 == 0 {
                    m.acquire(lock).await.doing(|| "lock")?;
                    m.compute(Nanos::from_us(300)).await.doing(|| "compute")?;
                    m.release(lock);
                }
            }
            m.send(done, i as u64).await.doing(|| "send")
        };
        m.spawn(how, task).await.doing(|| "spawn")?;
    }
    m.mark(Mark::Phase("wait"));
    let mut seen = 0;
    for _ in names {
        let got = m.recv(done).await.doing(|| "receive")?;
        seen |= 1 << got.unwrap_or(9);
    }
    assert_eq!(seen, 0b1111);
    m.metric("readers", "n", 4.0, true);
    Ok(())
}

#[test]
fn tasks_synchronise_are_measured_and_end() {
    let ran = run(&world(DISK, "cfq"), readers);
    assert_eq!(ran.stopped, None);
    let r = &ran.record;
    let read = r.operation("read").expect("measured");
    assert_eq!((read.latency.count(), read.bytes), (200, 200 * 4096));
    assert_eq!((r.read.ios, r.tasks.len()), (200, 5));
    let part = r.tasks.iter().find(|t| t.path == "main/c").expect("a task");
    assert_eq!((part.ops, part.reads, part.read_bytes), (50, 50, 50 * 4096));
    assert_eq!(r.marks[0].name, "wait");
    assert!(
        r.processes
            .iter()
            .any(|p| p.name == "main/a" && p.ios == 50)
    );
    assert!(r.duration_ns > 0 && r.device_busy_ns > r.duration_ns / 2);
}

#[test]
fn same_seed_gives_same_bytes_on_any_number_of_threads() {
    let w = world(DISK, "cfq");
    let json = |_| serde_json::to_string(&run(&w, readers).record).expect("a record");
    let alone = run_all(2, 1, json);
    assert_eq!(alone[0], alone[1]);
    assert_eq!(run_all(6, 3, json), vec![alone[0].clone(); 6]);
    let mut other = w.clone();
    other.setup.seed = 2;
    let other = serde_json::to_string(&run(&other, readers).record).expect("a record");
    assert_ne!(alone[0], other);
}

#[test]
fn random_streams_are_named_by_seed_and_task_path() {
    let ran = run(&world(FAST, "noop"), async |mut m: SimMachine| {
        let child = async |mut m: SimMachine| -> Outcome {
            let want = stream(1, "main/child").next_u64();
            assert_eq!(m.rng().next_u64(), want);
            Ok(())
        };
        let j = m.spawn(How::named("child"), child).await;
        let j = j.doing(|| "spawn")?;
        m.join(j).await?;
        let twice = m.join(j).await.expect_err("joined before");
        assert_eq!(twice.errno, Errno::EINVAL);
        Ok(())
    });
    assert_eq!(ran.stopped, None);
}

#[test]
fn deadlocked_tasks_are_reported_by_name() {
    let w = world(FAST, "noop");
    let mut drive = Drive::open(&w.setup).expect("a device");
    let embrace = async |mut m: SimMachine| -> Outcome {
        let (a, b) = (m.lock(), m.lock());
        m.acquire(a).await.doing(|| "a")?;
        let other = async move |mut m: SimMachine| -> Outcome {
            m.acquire(b).await.doing(|| "b")?;
            m.acquire(a).await.doing(|| "a")
        };
        m.spawn(How::named("other"), other)
            .await
            .doing(|| "spawn")?;
        m.sleep(Nanos::from_ms(5)).await.doing(|| "sleep")?;
        m.acquire(b).await.doing(|| "b")
    };
    let e = run_script("embrace", &w, &mut drive, embrace).expect_err("stuck");
    let words = e.to_string();
    assert!(
        words.contains(
            "main waits for lock 1, held by main/other; main/other waits for lock 0, held by main"
        ),
        "{words}"
    );
    // The drive still works after the failed run.
    let ran = run_script("after", &w, &mut drive, readers).expect("it runs");
    assert_eq!(ran.stopped, None);
}

#[test]
fn failing_task_stops_all_tasks_and_keeps_results() {
    let ran = run(&world(FAST, "noop"), async |mut m: SimMachine| {
        let c = m.channel(1);
        let bad = async |mut m: SimMachine| -> Outcome {
            let fd = m.open_device(DIRECT | OpenFlags::RDONLY).await;
            let fd = fd.doing(|| "open")?;
            let op = m.op_begin("read");
            m.read(fd, 0, 4096).await.doing(|| "read")?;
            m.op_end(op, 4096);
            m.write(fd, 0, 4096).await.doing(|| "write to the disk")?;
            Ok(())
        };
        m.spawn(How::named("bad"), bad).await.doing(|| "spawn")?;
        let got = m.recv(c).await;
        assert_eq!(got, Err(Errno::ECANCELED));
        assert_eq!(m.sleep(Nanos(1)).await, Err(Errno::ECANCELED));
        got.map(|_| ()).doing(|| "receive")
    });
    assert_eq!(
        ran.stopped.as_deref(),
        Some("main/bad: write to the disk: bad file descriptor (EBADF)")
    );
    assert!(ran.record.operation("read").is_some());
}

#[test]
fn time_limit_or_end_of_the_main_task_stops_all_tasks() {
    let mut w = world(FAST, "noop");
    let endless = async |mut m: SimMachine| -> Outcome {
        loop {
            m.sleep(Nanos::from_ms(1)).await.doing(|| "sleep")?;
        }
    };
    w.apply("limit=2").expect("good");
    let ran = run(&w, endless);
    assert_eq!(
        ran.stopped.as_deref(),
        Some("stopped at the time limit of 2 s")
    );
    let ms = ran.record.duration_ns / 1_000_000;
    assert!((2000..=2001).contains(&ms), "{ms} ms");
    let ran = run(&world(FAST, "noop"), async move |mut m: SimMachine| {
        m.spawn(How::named("left"), endless)
            .await
            .doing(|| "spawn")?;
        m.sleep(Nanos::from_ms(10)).await.doing(|| "sleep")
    });
    assert_eq!(ran.stopped, None);
}

/// Starts the workload's clock after a second, then reads cached data forever.
async fn endless(mut m: SimMachine) -> Outcome {
    m.sleep(Nanos::from_secs(1)).await.doing(|| "sleep")?;
    m.mark(Mark::ClockStart);
    loop {
        m.sleep(Nanos::from_secs(60)).await.doing(|| "sleep")?;
    }
}

#[test]
fn endless_run_has_a_default_limit_of_measured_time() {
    let setup = world(FAST, "noop");
    let ran = run(&setup, endless);
    assert_eq!(
        ran.stopped.as_deref(),
        Some("stopped at the default limit of 3600 s (change it with --machine limit=SECONDS)")
    );
    assert!(ran.limited);
    assert_eq!(ran.record.duration_ns, 3_601_000_000_000);
    assert_eq!(ran.record.span_ns(), 3_600_000_000_000);
    assert_eq!(ran.record.tasks[0].ended_ns, 3_601_000_000_000);
    // A workload with a fixed duration has a limit in proportion to the duration, at least 10 min.
    let spans = [(10, 600), (200, 600), (3600, 10_800)];
    for (span, limit) in spans.map(|(s, l)| (Nanos::from_secs(s), Nanos::from_secs(l))) {
        assert_eq!(bound::usual(Some(span)), limit);
    }
}

#[test]
fn file_creation_has_its_own_limit_and_measurements_are_kept() {
    let setup = world(FAST, "noop");
    let ran = run(&setup, async |mut m: SimMachine| {
        m.sleep(Nanos::from_secs(86_400)).await.doing(|| "sleep")
    });
    assert!(ran.limited);
    assert_eq!(ran.record.duration_ns, 3_600_000_000_000);
    // The clock had stopped, so the measurement is complete. Only the clean-up was cut off.
    let mut setup = world(FAST, "noop");
    setup.apply("limit=5").expect("good");
    let ran = run(&setup, async |mut m: SimMachine| {
        m.mark(Mark::ClockStart);
        m.sleep(Nanos::from_secs(1)).await.doing(|| "sleep")?;
        m.mark(Mark::ClockStop);
        m.sleep(Nanos::from_secs(60)).await.doing(|| "sleep")
    });
    assert!(!ran.limited && ran.stopped.is_some());
}

#[test]
fn default_limit_of_events_ends_a_run() {
    let mut bound = bound::Bound::new(None, None);
    assert_eq!(bound.too_much(bound::WORK - 1), None);
    let why = bound.too_much(bound::WORK).expect("a reason");
    assert!(
        why.starts_with("stopped at the default limit of 200 million"),
        "{why}"
    );
    bound.clock(Some(Instant::START + Nanos::from_secs(2)));
    assert_eq!(bound.at, Instant::START + Nanos::from_secs(3602));
    // There is no limit in work if the user sets a limit or if the duration is fixed.
    for free in [
        bound::Bound::new(Some(Nanos::from_secs(1)), None),
        bound::Bound::new(None, Some(Nanos::from_secs(1))),
    ] {
        assert_eq!(free.too_much(u64::MAX - 1), None);
    }
}

#[test]
fn tasks_share_the_cores() {
    let mut w = world(FAST, "noop");
    let mut took = |cores: &str| {
        w.apply(&format!("cores={cores}")).expect("good");
        let ran = run(&w, async |mut m: SimMachine| {
            let mut joins = Vec::new();
            for k in 0..4 {
                let spin = async |mut m: SimMachine| -> Outcome {
                    m.compute(Nanos::from_ms(50)).await.doing(|| "compute")
                };
                let j = m.spawn(How::named(format!("w{k}")), spin).await;
                joins.push(j.doing(|| "spawn")?);
            }
            for j in joins {
                m.join(j).await?;
            }
            Ok(())
        });
        ran.record.duration_ns / 1_000_000
    };
    assert_eq!((took("4"), took("2"), took("1")), (50, 100, 200));
}

#[test]
fn drive_keeps_its_state_and_clock_between_runs() {
    let w = world(DISK, "noop");
    let mut drive = Drive::open(&w.setup).expect("a device");
    let read = async |mut m: SimMachine| -> Outcome {
        let fd = m.open_device(DIRECT).await.doing(|| "open")?;
        m.read(fd, 50 << 30, 65_536).await.doing(|| "read")?;
        Ok(())
    };
    let mut took = Vec::new();
    for _ in 0..2 {
        let ran = run_script("read", &w, &mut drive, read).expect("it runs");
        assert_eq!(ran.record.read.ios, 1);
        took.push(ran.record.duration_ns);
    }
    // The second run finds the blocks in the cache of the drive.
    assert!(took[1] * 5 < took[0], "{took:?}");
    assert_eq!(drive.age().0, took[0] + took[1]);
    drive.rest(Nanos::from_secs(10));
    assert_eq!(drive.age().0, took[0] + took[1] + 10_000_000_000);
    assert!(drive.stats().cache_hits >= 1);
}

#[test]
fn tasks_can_share_an_io_context() {
    let ran = run(&world(DISK, "cfq"), async |mut m: SimMachine| {
        let how = How {
            io_context: IoContextOf::Share,
            ..How::named("clone")
        };
        let read = async |mut m: SimMachine| -> Outcome {
            let fd = m.open_device(DIRECT).await.doing(|| "open")?;
            m.read(fd, 0, 4096).await.doing(|| "read").map(|_| ())
        };
        let j = m.spawn(how, read).await.doing(|| "spawn")?;
        m.join(j).await
    });
    assert_eq!((ran.stopped, ran.record.read.ios), (None, 1));
}

#[test]
fn queue_depth_reaches_the_device() {
    let ran = run(&world(FAST, "noop"), async |mut m: SimMachine| {
        let aio = m.aio(4).await.doing(|| "aio")?;
        let fd = m.open_device(DIRECT).await.doing(|| "open")?;
        let at = |k: u64| AioRequest {
            fd,
            op: AioOp::Read,
            off: k << 20,
            len: 4096,
            tag: k,
        };
        let four: Vec<_> = (0..4).map(at).collect();
        m.aio_submit(aio, &four).await.doing(|| "submit")?;
        assert_eq!(m.aio_submit(aio, &four[..1]).await, Err(Errno::EAGAIN));
        let mut done = Vec::new();
        m.aio_reap(aio, 4, &mut done).await.doing(|| "reap")?;
        assert!(done.len() == 4 && done.iter().all(|d| d.result == Ok(4096)));
        m.aio_close(aio).await.doing(|| "close")
    });
    assert_eq!(ran.stopped, None);
    assert_eq!(ran.record.outstanding_max, 4);
}

#[test]
fn files_are_created_read_listed_and_removed() {
    let ran = run(&world(DISK, "cfq"), async |mut m: SimMachine| {
        m.mkdir("d").await.doing(|| "mkdir")?;
        m.mkdir("d/e").await.doing(|| "mkdir")?;
        let f = m.open("d/a", OpenFlags::CREATE).await.doing(|| "open")?;
        assert_eq!(m.write(f, 0, 100_000).await, Ok(100_000));
        assert_eq!(m.append(f, 5).await, Ok(5));
        assert_eq!(m.read(f, 99_000, 8192).await, Ok(1005));
        assert_eq!(m.fstat(f).await.map(|s| s.len), Ok(100_005));
        m.fsync(f).await.doing(|| "fsync")?;
        m.close(f).await.doing(|| "close")?;
        let names = m.readdir("d").await.doing(|| "readdir")?;
        let names: Vec<_> = names.iter().map(|e| (e.name.as_str(), e.dir)).collect();
        assert_eq!(names, [("a", false), ("e", true)]);
        assert_eq!(m.stat("d/b").await, Err(Errno::ENOENT));
        assert_eq!(m.open("/d", OpenFlags::CREATE).await, Err(Errno::EINVAL));
        let dir = m.open("d", OpenFlags::DIRECTORY).await.doing(|| "open d")?;
        m.fsync(dir).await.doing(|| "fsync d")?;
        assert_eq!(m.fstat(dir).await.map(|s| s.dir), Ok(true));
        assert_eq!(m.read(dir, 0, 1).await, Err(Errno::EINVAL));
        m.close(dir).await.doing(|| "close d")?;
        let file = m.open("d/a", OpenFlags::DIRECTORY).await;
        assert_eq!(file, Err(Errno::ENOTDIR));
        m.unlink("d/a").await.doing(|| "unlink")?;
        assert_eq!(m.rmdir("d").await, Err(Errno::ENOTEMPTY));
        m.drop_caches().await.doing(|| "drop")?;
        m.syncfs().await.doing(|| "sync")
    });
    assert_eq!(ran.stopped, None);
    assert!(ran.stats.flushes > 0 && ran.stats.sync_writes.bytes > 100_000);
    assert!(ran.record.processes.iter().any(|p| p.name == "journal"));
}

/// Reads cached files of several sizes. One file takes two calls, and one is empty. With `at_once`,
/// the tasks use the call that reads a whole file.
fn cached_readers(tasks: u32, at_once: bool) -> Ran {
    const CHUNK: u32 = 64 << 10;
    let w = world(FAST, "noop");
    run(&w, async move |mut m: SimMachine| {
        let sizes = [0, 1, 4096, 30_000, 65_536, 65_537];
        for (i, size) in sizes.into_iter().enumerate() {
            let f = m.open(&format!("f{i}"), OpenFlags::CREATE).await;
            let f = f.doing(|| "open")?;
            m.write(f, 0, size).await.doing(|| "write")?;
            m.close(f).await.doing(|| "close")?;
        }
        let mut joins = Vec::new();
        for k in 0..tasks {
            let reader = async move |mut m: SimMachine| -> Outcome {
                for i in 0..600 {
                    let name = format!("f{}", i % 7);
                    let there = match at_once {
                        true => m.read_whole(&name, CHUNK).await?,
                        false => {
                            seekwell_workload::scripts::common::read_whole(&mut m, &name, CHUNK)
                                .await?
                        }
                    };
                    assert_eq!(there, i % 7 < 6, "{name}");
                }
                Ok(())
            };
            let j = m.spawn(How::named(format!("r{k}")), reader).await;
            joins.push(j.doing(|| "spawn")?);
        }
        for j in joins {
            m.join(j).await?;
        }
        Ok(())
    })
}

#[test]
fn whole_file_read_equals_its_single_calls() {
    for tasks in [1, 5] {
        let (one, each) = (cached_readers(tasks, true), cached_readers(tasks, false));
        let of = |r: &Ran| {
            let read = r.record.operation("read").expect("measured").clone();
            let wall = r.record.duration_ns;
            let latency = (read.latency.buckets(), read.latency.mean_ns());
            (wall, latency, read.bytes, read.ended_ns, r.stats.calls)
        };
        assert_eq!(of(&one), of(&each), "{tasks} tasks");
    }
}

#[test]
fn progress_is_reported_and_cancellation_keeps_measurements() {
    let w = world(DISK, "noop");
    let run = |spec: &str, stop: u64| {
        let plan = Plan::new(spec, &[]).expect("good parameters");
        let mut told = Vec::new();
        let mut tell = |done, of| {
            told.push((done, of));
            done < stop
        };
        let beside = Beside {
            progress: Some(&mut tell),
            ..Beside::default()
        };
        let mut drive = Drive::open(&w.setup).expect("a disk");
        let ran = run_beside(&plan, &w, &mut drive, beside).expect("it runs");
        (ran, told)
    };
    let (whole, told) = run("random-read:size=64m,seconds=8s", u64::MAX);
    assert_eq!(whole.stopped, None);
    let second = 1_000_000_000;
    assert!(told.is_sorted() && told.iter().all(|t| t.1 == 8 * second));
    assert!(told.last().is_some_and(|t| t.0 > 4 * second), "{told:?}");
    let (cut, _) = run("random-read:size=64m,seconds=8s", 4 * second);
    assert!(cut.stopped.is_some_and(|w| w.starts_with("stopped after")));
    assert!(cut.record.read.ios > 0 && cut.record.read.ios < whole.record.read.ios);
    // The operations of the script are recorded, although the run was stopped early.
    assert!(
        cut.record
            .operation("read")
            .is_some_and(|o| o.latency.count() > 0)
    );
    let (_, told) = run("fs-mark:files=300,size=4k", u64::MAX);
    assert!(told.len() > 1 && told.iter().all(|t| t.1 == 0), "{told:?}");
}
