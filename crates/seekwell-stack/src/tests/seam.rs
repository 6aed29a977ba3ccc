//! Tests of calls, time and cores.

use super::disk::Disk;
use super::machine::Machine;
use crate::{Call, Config, Fd};
use seekwell_core::{Era, Errno, Nanos, OpenFlags};

fn machine(cores: u16) -> Machine {
    let mut c = Config::new(Era::K3_4);
    c.cores = cores;
    c.constants.call_ns = 0;
    c.constants.bio_ns = 0;
    Machine::new(c, Disk::hdd())
}

#[test]
fn direct_read_takes_the_disks_service_time() {
    let mut m = machine(1);
    let t = m.task("reader");
    let t0 = m.now;
    let r = Call::RawRead {
        off: 1 << 20,
        len: 4096,
        direct: true,
    };
    assert_eq!(m.call(t, r), Ok(4096));
    assert_eq!(m.now.since(t0), Nanos(8_000_000 + 40_960));
    let odd = Call::RawRead {
        off: 100,
        len: 4096,
        direct: true,
    };
    assert_eq!(m.call(t, odd), Err(Errno::EINVAL));
    let t0 = m.now;
    assert_eq!(m.call(t, Call::RawFlush), Ok(0));
    assert_eq!(m.now.since(t0), Nanos(8_000_000));
}

#[test]
fn sleep_and_compute_take_their_time() {
    let mut m = machine(1);
    let t = m.task("sleeper");
    let t0 = m.now;
    assert_eq!(m.call(t, Call::Sleep(Nanos(12345))), Ok(0));
    assert_eq!(m.call(t, Call::Compute(Nanos(5))), Ok(0));
    assert_eq!(m.now.since(t0), Nanos(12350));
}

#[test]
fn tasks_share_the_available_cores() {
    for (cores, tasks, expect_ms) in [(1, 3, 300), (2, 4, 200), (4, 4, 100), (4, 2, 100)] {
        let mut m = machine(cores);
        let all: Vec<_> = (0..tasks).map(|_| m.task("burner")).collect();
        let t0 = m.now;
        let mut ends = Vec::new();
        m.run(&all, |_, now, last| match last {
            None => Some(Call::Compute(Nanos::from_ms(100))),
            Some(_) => {
                ends.push(now.since(t0).as_ms_f64());
                None
            }
        });
        println!("{cores} cores, {tasks} tasks of 100 ms: ends {ends:?}");
        assert_eq!(ends.last(), Some(&f64::from(expect_ms)));
        // The tasks run round robin, so they end together and not one after the other.
        assert!(
            ends[0] >= f64::from(expect_ms) - 4.0 * f64::from(tasks),
            "{ends:?}"
        );
    }
}

#[test]
fn core_is_shared_by_time_and_not_by_calls() {
    let mut m = machine(1);
    let all = [m.task("short calls"), m.task("long calls")];
    let t0 = m.now;
    let mut had_ns = [0u64; 2];
    m.run(&all, |who, now, _| {
        let ns = [1_000, 100_000][who];
        let more = now.since(t0) < Nanos::from_ms(200);
        had_ns[who] += if more { ns } else { 0 };
        more.then_some(Call::Compute(Nanos(ns)))
    });
    // If calls alternated, the first task would get a hundredth of the time.
    let apart = had_ns[0].abs_diff(had_ns[1]);
    assert!(apart <= 200_000, "{had_ns:?}");
}

#[test]
fn task_that_slept_runs_before_compute_bound_tasks() {
    let mut m = machine(1);
    let mut all = vec![m.task("sleeper")];
    all.extend((0..20).map(|_| m.task("burner")));
    let (t0, mut begun, mut waits_ms, mut asleep) = (m.now, m.now, Vec::new(), false);
    m.run(&all, |who, now, _| {
        if now.since(t0) > Nanos::from_secs(2) {
            return None;
        }
        // Before every task has run once, no task is ahead of another.
        if who == 0 && now == t0 {
            return Some(Call::Sleep(Nanos::from_ms(200)));
        }
        if who > 0 {
            return Some(Call::Compute(Nanos::from_ms(1)));
        }
        if !asleep && begun > t0 {
            waits_ms.push(now.since(begun).as_ms_f64());
        }
        begun = now;
        asleep = !asleep;
        Some(if asleep {
            Call::Sleep(Nanos::from_ms(50))
        } else {
            Call::Compute(Nanos(100_000))
        })
    });
    // The task never waits for one other task, and therefore not for twenty.
    let longest = waits_ms.iter().fold(0.0, |a: f64, b| a.max(*b));
    assert!(waits_ms.len() > 30 && longest < 0.2, "{waits_ms:?}");
}

#[test]
fn task_keeps_its_core_between_calls() {
    // Counted on 6.18 (HZ 250): two and four tasks read cached files on one core. With five calls
    // per one or two microseconds, each task runs 3.9 ms before a switch.
    for tasks in [2u32, 4] {
        let mut m = machine(1);
        let names: Vec<String> = (0..tasks).map(|i| format!("caller {i}")).collect();
        let all: Vec<_> = names.iter().map(|n| m.task(n)).collect();
        let (t0, mut last, mut switches) = (m.now, usize::MAX, 0u32);
        m.run(&all, |who, now, _| {
            switches += u32::from(who != last && now > t0);
            last = who;
            (now.since(t0) < Nanos::from_secs(1)).then_some(Call::Compute(Nanos(2_000)))
        });
        let turn_ms = 1000.0 / f64::from(switches);
        assert!((3.5..4.5).contains(&turn_ms), "{turn_ms} ms a turn");
    }
}

#[test]
fn waking_task_preempts_a_computation() {
    let mut m = machine(1);
    let all = [m.task("sleeper"), m.task("burner")];
    let (t0, mut asleep_at, mut late) = (m.now, m.now, Vec::new());
    m.run(&all, |who, now, _| {
        if now.since(t0) > Nanos::from_secs(1) {
            return None;
        }
        if who == 1 {
            return Some(Call::Compute(Nanos::from_ms(100)));
        }
        // The task sleeps, requests a little CPU time, and repeats this.
        late.push(now.since(asleep_at).as_ms_f64());
        asleep_at = now;
        Some(match late.len() % 2 {
            1 => Call::Sleep(Nanos::from_ms(30)),
            _ => Call::Compute(Nanos(10_000)),
        })
    });
    let computed = late.iter().skip(2).step_by(2);
    let longest = computed.fold(0.0, |a: f64, b| a.max(*b));
    assert!(late.len() > 60 && longest < 0.1, "{late:?}");
}

#[test]
fn directory_can_be_opened_and_synced_but_not_read_or_written() {
    let mut m = machine(1);
    let t = m.task("program");
    m.call(t, Call::Mkdir { path: "/d".into() }).expect("makes");
    let open = |flags| Call::Open {
        path: "/d".into(),
        flags,
    };
    assert_eq!(m.call(t, open(OpenFlags::CREATE)), Err(Errno::EISDIR));
    let fd = Fd(m.call(t, open(OpenFlags::empty())).expect("opens") as u32);
    assert_eq!(
        m.call(
            t,
            Call::Read {
                fd,
                off: 0,
                len: 10
            }
        ),
        Err(Errno::EISDIR)
    );
    assert_eq!(
        m.call(
            t,
            Call::Write {
                fd,
                off: 0,
                len: 10
            }
        ),
        Err(Errno::EISDIR)
    );
    assert_eq!(
        m.call(
            t,
            Call::Map {
                fd,
                off: 0,
                len: 10
            }
        ),
        Err(Errno::ENODEV)
    );
    let before = m.kernel.stats().commits;
    assert_eq!(m.call(t, Call::Fsync { fd }), Ok(0));
    assert_eq!(m.kernel.stats().commits, before + 1);
    // The file was removed while it was open. It disappears when it is closed.
    assert_eq!(m.call(t, Call::Rmdir { path: "/d".into() }), Ok(0));
    assert_eq!(m.call(t, Call::Close { fd }), Ok(0));
    assert_eq!(m.call(t, open(OpenFlags::empty())), Err(Errno::ENOENT));
    m.kernel.check();
}
