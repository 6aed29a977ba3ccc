//! Real-time priority while I/Os are timed, and how busy the CPUs were.

/// Fraction of the time with tasks that waited for a CPU, above which the machine counts as busy.
const BUSY: f64 = 0.2;

/// Real-time priority of this thread until the value is dropped. Without the right, nothing
/// changes.
pub(super) struct Realtime(bool);

#[expect(unsafe_code, reason = "no safe wrapper exists")]
fn set(policy: i32, priority: i32) -> bool {
    // SAFETY: the structure is plain data, and it outlives the call. 0 means this thread.
    unsafe {
        let mut p: libc::sched_param = std::mem::zeroed();
        p.sched_priority = priority;
        libc::sched_setscheduler(0, policy, &raw const p) == 0
    }
}

impl Realtime {
    /// Takes the lowest real-time priority, if the process may.
    pub fn take() -> Self {
        Realtime(set(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1))
    }
}

impl Drop for Realtime {
    fn drop(&mut self) {
        if self.0 {
            set(libc::SCHED_OTHER, 0);
        }
    }
}

/// Returns the total time in which at least one task waited for a CPU, in us; `None` if the kernel
/// does not report it.
pub(super) fn waited_us() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let some = text.lines().next()?.split("total=").nth(1)?;
    some.trim().parse().ok()
}

/// Describes how busy the CPUs were in `ns` nanoseconds, or returns `None` if they were not.
pub(super) fn busy(before: Option<u64>, after: Option<u64>, ns: u64) -> Option<String> {
    let waited = after?.checked_sub(before?)?;
    let share = (waited as f64 * 1e3 / ns.max(1) as f64).min(1.0);
    (share > BUSY).then(|| {
        format!(
            "the machine was busy: tasks waited for a CPU {:.0} % of the time, so times may be too \
             long",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_machine_is_described_with_its_share() {
        let text = busy(Some(1_000), Some(501_000), 1_000_000_000).expect("busy");
        assert!(text.contains("50 %"), "{text}");
        assert_eq!(busy(Some(0), Some(100_000), 1_000_000_000), None);
        assert_eq!(busy(None, Some(1), 1), None);
        assert_eq!(busy(Some(5), Some(1), 1), None, "a counter that went back");
    }

    #[test]
    #[expect(unsafe_code, reason = "no safe wrapper exists")]
    fn priority_ends_with_the_value() {
        // SAFETY: the call has no arguments in memory.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        drop(Realtime::take());
        assert_eq!(policy(), before);
    }
}
