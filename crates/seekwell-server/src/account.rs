//! Measures how late completions are delivered, and decides whether a run is reliable.
//!
//! Each command has two latencies. The model's latency is its completion time minus its arrival
//! time. The delivered latency is the time of the reply to the kernel minus the arrival time. The
//! limits of the verdict extend the criterion for timing-accurate storage emulation of Griffin et
//! al. (FAST 2002): service times within 2 % of the model for 99 % of the requests. Wider limits
//! are added for less precise runs.

use crate::asker::Owners;
use crate::wait::Margin;
use seekwell_core::numbers::signed;
use seekwell_core::{Instant, NSEC_PER_SEC, Nanos, result::Latency};
use serde::Serialize;
use std::fmt;

/// Version of the JSON document. It is increased when a field changes its meaning.
const SCHEMA: u32 = 1;
/// A pause of the server's loop that is longer than this makes the run invalid, ns.
const GAP_MAX_NS: u64 = NSEC_PER_SEC / 10;
/// If a larger fraction of the commands is faster than the transport, the run is invalid.
const UNREACHABLE_MAX: f64 = 0.01;

/// If a larger fraction of the commands comes from unknown processes, a reason is added for
/// schedulers that distinguish processes.
const HIDDEN_MAX: f64 = 0.01;

/// Verdict on the reliability of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The 99th percentile of lateness is at most 2 % of the model's median latency. The error of
    /// the mean latency is at most 1 %.
    Exact,
    /// The 99th percentile of lateness is at most 10 %, and the error of the mean is at most 3 %.
    Good,
    /// The 99th percentile of lateness is at most 30 %, and the error of the mean is at most 10 %.
    /// Only differences between schedulers that exceed twice the error of the mean are reliable.
    Usable,
    /// No command completed.
    Idle,
    /// One of these limits is exceeded, or more than 1 % of the commands are faster than the
    /// transport, or the machine paused.
    Invalid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Exact => "exact",
            Verdict::Good => "good",
            Verdict::Usable => "usable",
            Verdict::Idle => "idle",
            Verdict::Invalid => "invalid",
        })
    }
}

/// Numbers for one second of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Second {
    /// Number of completed commands.
    pub done: u64,
    /// Sum of the lateness of all completions, ns.
    pub late_sum_ns: u64,
    /// Largest lateness, ns.
    pub late_max_ns: u64,
}

/// Timing statistics of a run. Times are in ns.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Account {
    /// Version of this data layout.
    pub schema: u32,
    /// Name of the device model.
    pub device: String,
    /// Number of completed reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Number of completed writes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Number of completed flushes.
    pub flushes: u64,
    /// Number of completed durable writes (O_SYNC, O_DSYNC).
    pub durable_writes: u64,
    /// Number of flushes and durable writes that were acknowledged after the data were on the
    /// medium of the backing file. `None` if the data are in memory.
    pub backed: Option<u64>,
    /// Number of fdatasync(2) calls on the backing file while serving. Simultaneous flushes share
    /// one call.
    pub backing_syncs: u64,
    /// Number of completions that waited for the backing file after the model had completed the
    /// command.
    pub backing_waits: u64,
    /// Longest wait for the backing file, ns.
    pub backing_wait_max_ns: u64,
    /// Number of completed discards and write-zeroes commands.
    pub discards: u64,
    /// Number of failed commands of all kinds, for example out of range or no space in the backing
    /// file.
    pub errors: u64,
    /// Number of commands by owner, as far as the kernel reports the owner.
    pub owners: Owners,
    /// Whether the scheduler of the served disk distinguishes processes.
    pub per_process: bool,
    /// Maximum number of outstanding commands.
    pub outstanding_max: u64,
    /// Maximum number of commands in the device.
    pub depth_max: u32,
    /// Latency of the model.
    pub model: Latency,
    /// Latency as delivered to the kernel.
    pub delivered: Latency,
    /// Lateness: time of the reply minus due time.
    pub late: Latency,
    /// Numbers for each second, at most one day.
    pub seconds: Vec<Second>,
    /// Latency of the transport, which is subtracted from each completion, ns.
    pub floor_ns: u64,
    /// Number of commands that the model completes faster than the transport. They are delivered at
    /// the speed of the transport.
    pub unreachable: u64,
    /// Number of completions that were delayed so that they do not overtake an earlier completion.
    pub clamped: u64,
    /// Number of arrivals with a timestamp before the clock of the model. This happens only if
    /// `floor_ns` is not 0.
    pub raised: u64,
    /// Largest correction of the timestamp of such an arrival, ns.
    pub raised_max_ns: u64,
    /// Longest time that a sleep of the loop ended too late, ns.
    pub overslept_max_ns: u64,
    /// Number of involuntary context switches of the loop.
    pub involuntary_switches: u64,
    /// CPU time that the hypervisor took away (steal), in ticks of 10 ms. `None` if the kernel does
    /// not report it.
    pub steal_ticks: Option<u64>,
    /// Whether the machine was suspended during the run.
    pub suspended: bool,
    /// Number of bytes that the data occupy in memory or in the backing file.
    pub used_bytes: u64,
    /// How the loop waits, and the measurement that this is based on.
    pub margin: Margin,
    /// The verdict. [`Account::close`] computes it.
    pub verdict: Option<Verdict>,
    /// Reasons why the verdict is not better.
    pub reasons: Vec<String>,
}

impl Account {
    /// Returns an account without commands.
    pub fn new(device: &str, margin: Margin, floor: Nanos) -> Self {
        Account {
            schema: SCHEMA,
            device: device.to_owned(),
            floor_ns: floor.0,
            margin,
            ..Account::default()
        }
    }

    /// Returns the number of completed commands.
    pub fn done(&self) -> u64 {
        self.reads + self.writes + self.flushes + self.discards
    }

    /// Adds a command. The arguments are its arrival, the completion time of the model, the due
    /// time of the reply, and the actual time of the reply.
    pub fn completed(&mut self, arrived: Instant, model: Instant, due: Instant, posted: Instant) {
        let late = posted.since(due);
        self.model.record(model.since(arrived).0);
        self.delivered.record(posted.since(arrived).0);
        self.late.record(late.0);
        let second = (posted.since_start() / NSEC_PER_SEC) as usize;
        // After one day only the totals are updated, to limit the size of the record.
        if second < 86_400 {
            if self.seconds.len() <= second {
                self.seconds.resize_with(second + 1, Second::default);
            }
            let s = &mut self.seconds[second];
            s.done += 1;
            s.late_sum_ns += late.0;
            s.late_max_ns = s.late_max_ns.max(late.0);
        }
    }

    /// Adds a command whose reply waited for the backing file after its due time.
    pub fn waited(&mut self, wait: Nanos) {
        self.backing_waits += 1;
        self.backing_wait_max_ns = self.backing_wait_max_ns.max(wait.0);
    }

    /// Returns the relative error of the mean delivered latency. For example, 0.01 means 1 % slower
    /// than the model. The latency of the transport was subtracted from the due time, so it is
    /// added here.
    pub fn mean_error(&self) -> f64 {
        let model = self.model.mean_ns();
        if model > 0.0 {
            (self.delivered.mean_ns() + self.floor_ns as f64) / model - 1.0
        } else {
            0.0
        }
    }
    /// Returns the 99th percentile of lateness as a fraction of the model's median latency.
    pub fn late_share(&self) -> f64 {
        let p50 = self.model.percentile_ns(50.0).max(1);
        self.late.percentile_ns(99.0) as f64 / p50 as f64
    }

    /// Returns a warning if the scheduler needs to know the process of each command and too many
    /// commands do not show it.
    pub fn hidden_owners(&self) -> Option<String> {
        let hidden = self.owners.hidden();
        (self.per_process && hidden > HIDDEN_MAX).then(|| {
            format!(
                "the scheduler distinguishes processes, but {:.0} % of the commands came from \
                 kernel workers or unknown threads: open the file itself with O_DIRECT, without a \
                 loop device",
                hidden * 100.0
            )
        })
    }

    /// Computes and stores the verdict and its reasons.
    pub fn close(&mut self) -> Verdict {
        let done = self.done().max(1) as f64;
        let (late, mean) = (self.late_share(), self.mean_error().abs());
        let mut verdict = match () {
            () if self.done() == 0 => Verdict::Idle,
            () if late <= 0.02 && mean <= 0.01 => Verdict::Exact,
            () if late <= 0.10 && mean <= 0.03 => Verdict::Good,
            () if late <= 0.30 && mean <= 0.10 => Verdict::Usable,
            () => Verdict::Invalid,
        };
        self.reasons.clear();
        if !matches!(verdict, Verdict::Exact | Verdict::Idle) {
            let why = format!(
                "99 of 100 completions are late by at most {:.1} % of the model's median latency; \
                 the mean latency differs by {} % from the model's",
                late * 100.0,
                signed(self.mean_error() * 100.0, 1)
            );
            self.reasons.push(why);
        }
        if self.backing_waits > 0 && verdict != Verdict::Exact {
            self.reasons.push(format!(
                "{} completions waited for the disk that holds the backing file, at most {:.1} \
                 ms: use a faster disk, or serve without a backing file",
                self.backing_waits,
                self.backing_wait_max_ns as f64 / 1e6
            ));
        }
        let mut spoil = |bad: bool, why: String| {
            if bad {
                verdict = Verdict::Invalid;
                self.reasons.push(why);
            }
        };
        let unreachable = self.unreachable as f64 / done;
        spoil(
            unreachable > UNREACHABLE_MAX,
            format!(
                "{:.1} % of the commands are faster than the transport can deliver them",
                unreachable * 100.0
            ),
        );
        spoil(
            self.overslept_max_ns > GAP_MAX_NS,
            format!(
                "the server's loop was stopped for {} ms",
                self.overslept_max_ns / 1_000_000
            ),
        );
        spoil(self.suspended, "the machine was suspended".to_owned());
        self.reasons.extend(self.hidden_owners());
        if !self.margin.realtime {
            self.reasons
                .push("no real-time priority: it needs CAP_SYS_NICE".to_owned());
        }
        self.verdict = Some(verdict);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an account with a hundred commands of 1 ms, each late by `late_us`.
    fn run(late_us: u64) -> Account {
        let margin = Margin {
            realtime: true,
            ..Margin::default()
        };
        let mut a = Account::new("test", margin, Nanos::ZERO);
        for i in 0..100 {
            let (at, due) = (
                Instant::at_us(i * 10_000),
                Instant::at_us(i * 10_000 + 1000),
            );
            a.reads += 1;
            a.completed(at, due, due, due + Nanos::from_us(late_us));
        }
        a
    }

    #[test]
    fn timing_verdict_follows_the_table() {
        for (late_us, verdict) in [
            (0, Verdict::Exact),
            (9, Verdict::Exact),
            (25, Verdict::Good),
            (60, Verdict::Usable),
            (150, Verdict::Invalid),
        ] {
            let mut a = run(late_us);
            assert_eq!(a.close(), verdict, "{late_us} us");
            assert_eq!(
                a.reasons.is_empty(),
                verdict == Verdict::Exact,
                "{:?}",
                a.reasons
            );
        }
        assert_eq!(Account::default().close(), Verdict::Idle);
    }

    #[test]
    fn unreachable_overslept_or_suspended_runs_are_invalid() {
        let mut a = run(0);
        a.unreachable = 2;
        assert_eq!(a.close(), Verdict::Invalid);
        let mut a = run(0);
        a.overslept_max_ns = 101_000_000;
        assert_eq!(a.close(), Verdict::Invalid);
        let mut a = run(0);
        a.suspended = true;
        assert_eq!((a.close(), a.reasons.len()), (Verdict::Invalid, 1));
    }

    #[test]
    fn hidden_submitters_are_reported_for_per_process_schedulers() {
        let told = |per_process, program, kernel| {
            let mut a = run(0);
            a.per_process = per_process;
            (a.owners.program, a.owners.kernel) = (program, kernel);
            // The verdict on the timing is not affected.
            assert_eq!(a.close(), Verdict::Exact);
            a.reasons
        };
        assert_eq!(
            told(false, 0, 100),
            [""; 0],
            "not by a scheduler without processes"
        );
        assert_eq!(told(true, 100, 1), [""; 0], "an odd command changes little");
        let reasons = told(true, 25, 75);
        assert!(
            reasons[0].contains("75 % of the commands came from kernel"),
            "{reasons:?}"
        );
    }

    #[test]
    fn subtracted_transport_latency_is_no_timing_error() {
        // The model's latency is 1 ms and the latency of the transport is 0.1 ms. Therefore the
        // reply is due at 0.9 ms, and it is sent then.
        for (floor_us, error) in [(100, 0.0), (0, -0.1)] {
            let mut a = Account::new("test", Margin::default(), Nanos::from_us(floor_us));
            for i in 0..10 {
                let at = |us: u64| Instant::at_us(i * 10_000 + us);
                a.completed(at(0), at(1000), at(900), at(900));
            }
            assert!((a.mean_error() - error).abs() < 1e-9, "{}", a.mean_error());
        }
    }

    #[test]
    fn account_has_seconds_and_mean_errors() {
        let a = run(10);
        assert_eq!(a.seconds.len(), 1);
        assert_eq!((a.seconds[0].done, a.seconds[0].late_max_ns), (100, 10_000));
        assert!((a.mean_error() - 0.01).abs() < 1e-9);
    }
}
