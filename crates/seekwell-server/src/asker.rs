//! The thread that issued a request: what the kernel reports about it.
//!
//! The request carries only the thread's number. The thread's priority is looked up for each
//! request, by system calls of a few hundred nanoseconds. A cached priority would be wrong after
//! ionice(1), and after the kernel reused the number.

use seekwell_core::{Class, IoPrio};
use serde::Serialize;

/// Owner of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A program.
    Program,
    /// The kernel, on behalf of another task: the worker of a loop device, a flusher.
    Kernel,
    /// The request has no thread number, or the thread has ended.
    Unknown,
}

/// The thread behind a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asker {
    /// Its number; 0 if the request has none.
    pub pid: u32,
    /// Its owner.
    pub owner: Owner,
    /// The effective priority: that set by ioprio_set(2), or else derived from nice value and
    /// policy, as ioprio_set(2) describes. `None` if the thread has ended.
    pub ioprio: Option<IoPrio>,
}

impl Asker {
    /// Looks up a thread.
    pub fn of(pid: u32) -> Self {
        let unknown = Asker {
            pid,
            owner: Owner::Unknown,
            ioprio: None,
        };
        // 0 would mean the calling thread.
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

/// The result of ioprio_get(2) for a thread; its class is `None` if no priority was set.
fn ioprio_set_on(id: i32) -> Option<IoPrio> {
    const WHO_PROCESS: libc::c_int = 1;
    #[expect(unsafe_code, reason = "the C library has no function for it")]
    // SAFETY: numbers only.
    let r = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, id) };
    let value = u64::try_from(r).ok()?;
    // Bits above the level are hints.
    IoPrio::from_numbers(value >> 13, value & 7)
}

/// Process group of a thread; kernel threads are in group 0.
fn group(id: i32) -> Option<i32> {
    #[expect(unsafe_code, reason = "the safe wrapper takes group 0 for impossible")]
    // SAFETY: a number only.
    let group = unsafe { libc::getpgid(id) };
    (group >= 0).then_some(group)
}

/// The priority of a thread without an I/O priority.
fn by_nice(id: i32) -> IoPrio {
    let pid = rustix::process::Pid::from_raw(id);
    let nice = rustix::process::getpriority_process(pid).unwrap_or(0);
    #[expect(unsafe_code, reason = "no crate in use wraps the call")]
    // SAFETY: numbers only.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, id) };
    // A flag in the value makes children start with the default policy.
    let class = match policy as libc::c_int & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO | libc::SCHED_RR => Class::Rt,
        libc::SCHED_IDLE => Class::Idle,
        _ => Class::Be,
    };
    let level = ((nice + 20) / 5).clamp(0, 7) as u8;
    IoPrio { class, level }
}

/// Number of commands by owner of the thread.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Owners {
    /// Issued by a thread of a program.
    pub program: u64,
    /// Issued by a kernel thread for another task.
    pub kernel: u64,
    /// Issued by an unknown thread.
    pub unknown: u64,
}

impl Owners {
    /// Counts a command.
    pub fn count(&mut self, owner: Owner) {
        *match owner {
            Owner::Program => &mut self.program,
            Owner::Kernel => &mut self.kernel,
            Owner::Unknown => &mut self.unknown,
        } += 1;
    }
    /// Share of commands whose program is unknown.
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
        // SAFETY: numbers only; 0 is the calling thread.
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
    fn a_threads_own_priority_is_found_each_time() {
        // In a separate thread, because priorities belong to a thread.
        let thread = std::thread::spawn(|| {
            let seen = || Asker::of(me());
            let level = |nice: i32| IoPrio::be(((nice + 20) / 5) as u8);
            let nice = rustix::process::getpriority_process(None).expect("ours");
            assert_eq!((seen().owner, seen().pid), (Owner::Program, me()));
            assert_eq!(seen().ioprio, Some(level(nice)));
            assert!(set_ioprio(2, 6));
            assert_eq!(seen().ioprio, Some(IoPrio::be(6)));
            assert!(set_ioprio(3, 0));
            assert_eq!(seen().ioprio.map(|p| p.class), Some(Class::Idle));
            assert!(set_ioprio(0, 0));
            // Only a higher nice value, which needs no privilege.
            let nicer = (nice + 5).min(19);
            let id = Some(rustix::thread::gettid());
            rustix::process::setpriority_process(id, nicer).expect("allowed");
            assert_eq!(seen().ioprio, Some(level(nicer)));
            me()
        });
        let gone = Asker::of(thread.join().expect("no panic"));
        assert_eq!((gone.owner, gone.ioprio), (Owner::Unknown, None));
        let none = Asker::of(0);
        assert_eq!((none.owner, none.ioprio), (Owner::Unknown, None));
    }

    #[test]
    fn the_kernels_own_threads_are_told_apart() {
        // A container of its own shows no kernel threads.
        let comm = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
        if comm.trim() != "kthreadd" {
            println!("skipped: no kernel thread in sight");
            return;
        }
        assert_eq!(Asker::of(2).owner, Owner::Kernel);
    }

    #[test]
    fn commands_without_a_program_are_a_share() {
        let mut o = Owners::default();
        assert_eq!(o.hidden(), 0.0);
        for owner in [Owner::Program, Owner::Kernel, Owner::Unknown, Owner::Kernel] {
            o.count(owner);
        }
        assert_eq!((o.program, o.kernel, o.unknown), (1, 2, 1));
        assert_eq!(o.hidden(), 0.75);
    }
}
