//! Facts that the kernel reports about the thread that issued a request.
//!
//! A request contains only the number of the thread. The priority of the thread is looked up for
//! each request, by system calls that take a few hundred nanoseconds. A cached priority would be
//! wrong after ionice(1), and after the kernel has reused the number.

use seekwell_core::{Class, IoPrio};
use serde::Serialize;

/// Kind of the thread that issued a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A thread of a program.
    Program,
    /// A kernel thread that works for another task, such as the worker of a loop device or a
    /// writeback thread.
    Kernel,
    /// The request contains no thread number, or the thread has ended.
    Unknown,
}

/// The thread that issued a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asker {
    /// Number of the thread; 0 if the request contains none.
    pub pid: u32,
    /// Kind of the thread.
    pub owner: Owner,
    /// The effective I/O priority of the thread. If it was not set by ioprio_set(2), it is derived
    /// from the nice value and the scheduling policy, as ioprio_set(2) describes. `None` if the
    /// thread has ended.
    pub ioprio: Option<IoPrio>,
}

impl Asker {
    /// Looks up a thread by its number.
    pub fn look_up(pid: u32) -> Self {
        let unknown = Asker {
            pid,
            owner: Owner::Unknown,
            ioprio: None,
        };
        // The number 0 would mean the calling thread.
        let id = i32::try_from(pid).unwrap_or_default();
        let (true, Some(set)) = (id > 0, ioprio_set_on(id)) else {
            return unknown;
        };
        let owner = match group(id) {
            Some(0) => Owner::Kernel,
            Some(_) => Owner::Program,
            None => return unknown,
        };
        let ioprio = match set.class {
            Class::None => by_nice(id),
            _ => set,
        };
        Asker {
            pid,
            owner,
            ioprio: Some(ioprio),
        }
    }
}

/// Returns the result of ioprio_get(2) for a thread. The class of the result is `Class::None` if no
/// priority was set. Returns `None` if the thread has ended.
fn ioprio_set_on(id: i32) -> Option<IoPrio> {
    const WHO_PROCESS: libc::c_int = 1;
    #[expect(unsafe_code, reason = "the C library has no function for it")]
    // SAFETY: the call gets only numbers.
    let r = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, id) };
    let value = u64::try_from(r).ok()?;
    // The bits above the level contain hints.
    IoPrio::from_numbers(value >> 13, value & 7)
}

/// Returns the process group of a thread. Kernel threads are in group 0.
fn group(id: i32) -> Option<i32> {
    #[expect(unsafe_code, reason = "the safe wrapper takes group 0 for impossible")]
    // SAFETY: the call gets only a number.
    let group = unsafe { libc::getpgid(id) };
    (group >= 0).then_some(group)
}

/// Derives the I/O priority of a thread without one of its own from its nice value and its policy.
fn by_nice(id: i32) -> IoPrio {
    let pid = rustix::process::Pid::from_raw(id);
    let nice = rustix::process::getpriority_process(pid).unwrap_or(0);
    #[expect(unsafe_code, reason = "no crate in use wraps the call")]
    // SAFETY: the call gets only numbers.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, id) };
    // The value may contain the flag "reset on fork", which does not affect the priority of this
    // thread.
    let class = match policy as libc::c_int & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO | libc::SCHED_RR => Class::Rt,
        libc::SCHED_IDLE => Class::Idle,
        _ => Class::Be,
    };
    let level = ((nice + 20) / 5).clamp(0, 7) as u8;
    IoPrio { class, level }
}

/// Numbers of commands by the kind of the thread that issued them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Owners {
    /// Commands from threads of programs.
    pub program: u64,
    /// Commands from kernel threads that work for another task.
    pub kernel: u64,
    /// Commands from unknown threads.
    pub unknown: u64,
}

impl Owners {
    /// Counts one command.
    pub fn count(&mut self, owner: Owner) {
        *match owner {
            Owner::Program => &mut self.program,
            Owner::Kernel => &mut self.kernel,
            Owner::Unknown => &mut self.unknown,
        } += 1;
    }
    /// Returns the fraction of commands whose program is unknown, from 0 to 1.
    pub fn hidden(&self) -> f64 {
        let hidden = self.kernel + self.unknown;
        hidden as f64 / (hidden + self.program).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_ioprio(class: i32, level: i32) -> bool {
        #[expect(unsafe_code, reason = "the C library has no function for it")]
        // SAFETY: the call gets only numbers; 0 is the calling thread.
        let r = unsafe { libc::syscall(libc::SYS_ioprio_set, 1, 0, class << 13 | level) };
        r == 0
    }
    fn me() -> u32 {
        rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs()
    }

    #[test]
    fn current_priority_of_a_thread_is_looked_up_each_time() {
        // The test runs in a separate thread, because a priority belongs to a thread.
        let thread = std::thread::spawn(|| {
            let seen = || Asker::look_up(me());
            let level = |nice: i32| IoPrio::be(((nice + 20) / 5) as u8);
            let nice = rustix::process::getpriority_process(None).expect("ours");
            assert_eq!((seen().owner, seen().pid), (Owner::Program, me()));
            assert_eq!(seen().ioprio, Some(level(nice)));
            assert!(set_ioprio(2, 6));
            assert_eq!(seen().ioprio, Some(IoPrio::be(6)));
            assert!(set_ioprio(3, 0));
            assert_eq!(seen().ioprio.map(|p| p.class), Some(Class::Idle));
            assert!(set_ioprio(0, 0));
            // The nice value is only raised, because that needs no privilege.
            let nicer = (nice + 5).min(19);
            let id = Some(rustix::thread::gettid());
            rustix::process::setpriority_process(id, nicer).expect("allowed");
            assert_eq!(seen().ioprio, Some(level(nicer)));
            me()
        });
        let gone = Asker::look_up(thread.join().expect("no panic"));
        assert_eq!((gone.owner, gone.ioprio), (Owner::Unknown, None));
        let none = Asker::look_up(0);
        assert_eq!((none.owner, none.ioprio), (Owner::Unknown, None));
    }

    #[test]
    fn kernel_threads_are_distinguished_from_programs() {
        // In a container with its own PID namespace no kernel threads are visible.
        let comm = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
        if comm.trim() != "kthreadd" {
            println!("skipped: no kernel thread in sight");
            return;
        }
        assert_eq!(Asker::look_up(2).owner, Owner::Kernel);
    }

    #[test]
    fn share_of_commands_without_a_program_is_counted() {
        let mut o = Owners::default();
        assert_eq!(o.hidden(), 0.0);
        for owner in [Owner::Program, Owner::Kernel, Owner::Unknown, Owner::Kernel] {
            o.count(owner);
        }
        assert_eq!((o.program, o.kernel, o.unknown), (1, 2, 1));
        assert_eq!(o.hidden(), 0.75);
    }
}
