//! Lateness of completions, and whether a run is reliable.
//!
//! There are two latencies: the model's (completion minus arrival), and the delivered one (time of
//! the reply to the kernel minus arrival). The bounds of the verdict follow the criterion for
//! timing-accurate storage emulation (Griffin et al., FAST 2002: service times within 2 % of the
//! model for 99 % of requests), with wider steps added.

use crate::asker::Owners;
use crate::wait::Margin;
use seekwell_core::numbers::signed;
use seekwell_core::{Instant, NSEC_PER_SEC, Nanos, result::Latency};
use serde::Serialize;
use std::fmt;

/// Version of the JSON document; raised when a field changes its meaning.
const SCHEMA: u32 = 1;
/// A pause of the loop longer than this makes the run invalid, ns.
const GAP_MAX_NS: u64 = NSEC_PER_SEC / 10;
/// Share of commands faster than the transport above which the run is invalid.
const UNREACHABLE_MAX: f64 = 0.01;

/// Share of commands of unknown processes above which a per-process scheduler gets a remark.
const HIDDEN_MAX: f64 = 0.01;

/// Reliability of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The p99 of lateness is within 2 % of the model's median latency, the mean latency within 1
    /// %.
    Exact,
    /// Within 10 % and 3 %.
    Good,
    /// Within 30 % and 10 %: differences between schedulers must exceed twice the mean error.
    Usable,
    /// No command completed.
    Idle,
    /// Worse, or more than 1 % of the commands are faster than the transport, or the machine
    /// paused.
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

/// Figures of one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Second {
    /// Commands completed.
    pub done: u64,
    /// Sum of lateness, ns.
    pub late_sum_ns: u64,
    /// Largest lateness, ns.
    pub late_max_ns: u64,
}

/// Timing of a run. Times in ns.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Account {
    /// Version of this layout.
    pub schema: u32,
    /// Name of the device model.
    pub device: String,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Durable writes completed (O_SYNC, O_DSYNC).
    pub durable_writes: u64,
    /// Flushes and durable writes that were answered after the backing file's data reached its
    /// medium; `None` if data are in memory.
    pub backed: Option<u64>,
    /// Calls of fdatasync on the backing file while serving; simultaneous flushes share one.
    pub backing_syncs: u64,
    /// Completions that waited for the backing file after the model was done.
    pub backing_waits: u64,
    /// Longest such wait.
    pub backing_wait_max_ns: u64,
    /// Discards and zeroings completed.
    pub discards: u64,
    /// Failed commands of all kinds (out of range, no room in the store).
    pub errors: u64,
    /// Owners of the commands, as far as the kernel reports them.
    pub owners: Owners,
    /// Whether the scheduler in front distinguishes processes.
    pub per_process: bool,
    /// Maximum number of outstanding commands.
    pub outstanding_max: u64,
    /// Maximum number of commands in the device.
    pub depth_max: u32,
    /// The model's latency.
    pub model: Latency,
    /// The delivered latency.
    pub delivered: Latency,
    /// Lateness: time of the reply minus due time.
    pub late: Latency,
    /// Figures per second.
    pub seconds: Vec<Second>,
    /// Latency of the transport, subtracted from each completion.
    pub floor_ns: u64,
    /// Commands that the model serves faster than the transport; they are delivered at the speed of
    /// the transport.
    pub unreachable: u64,
    /// Completions delayed so that none overtakes an earlier one.
    pub clamped: u64,
    /// Arrivals that the model had already run past (only with a floor).
    pub raised: u64,
    /// Largest correction of such an arrival.
    pub raised_max_ns: u64,
    /// Longest overrun of a sleep of the loop.
    pub overslept_max_ns: u64,
    /// Involuntary context switches of the loop.
    pub involuntary_switches: u64,
    /// Ticks of 10 ms that the hypervisor took away; `None` if it does not report them.
    pub steal_ticks: Option<u64>,
    /// Whether the machine was suspended meanwhile.
    pub suspended: bool,
    /// Bytes that the data occupy.
    pub used_bytes: u64,
    /// Wait method and its measurement.
    pub margin: Margin,
    /// The verdict, computed by [`Account::close`].
    pub verdict: Option<Verdict>,
    /// Reasons why it is not better.
    pub reasons: Vec<String>,
}

impl Account {
    /// An empty account.
    pub fn new(device: &str, margin: Margin, floor: Nanos) -> Self {
        Account {
            schema: SCHEMA,
            device: device.to_owned(),
            floor_ns: floor.0,
            margin,
            ..Account::default()
        }
    }

    /// Commands completed.
    pub fn done(&self) -> u64 {
        self.reads + self.writes + self.flushes + self.discards
    }

    /// Adds a command: its arrival, the model's completion time, the due time of the reply, and the
    /// time of the reply.
    pub fn completed(&mut self, arrived: Instant, model: Instant, due: Instant, posted: Instant) {
        let late = posted.since(due);
        self.model.record(model.since(arrived).0);
        self.delivered.record(posted.since(arrived).0);
        self.late.record(late.0);
        let second = (posted.since_start() / NSEC_PER_SEC) as usize;
        // After a day only the totals are updated, so that the record stays small.
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

    /// Adds a command that waited for the backing file's disk after its due time.
    pub fn waited(&mut self, wait: Nanos) {
        self.backing_waits += 1;
        self.backing_wait_max_ns = self.backing_wait_max_ns.max(wait.0);
    }

    /// Error of the mean delivered latency relative to the model's: 0.01 is 1 % slower. The
    /// transport's latency is added to the reply time, since it was subtracted before.
    pub fn mean_error(&self) -> f64 {
        let model = self.model.mean_ns();
        if model > 0.0 {
            (self.delivered.mean_ns() + self.floor_ns as f64) / model - 1.0
        } else {
            0.0
        }
    }
    /// 99th percentile of lateness as a share of the model's median latency.
    pub fn late_share(&self) -> f64 {
        let p50 = self.model.percentile_ns(50.0).max(1);
        self.late.percentile_ns(99.0) as f64 / p50 as f64
    }

    /// Why the scheduler's decisions may not be those for the programs, if so.
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

    /// Computes the verdict.
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
                "99 of 100 completions are late by up to {:.1} % of the model's median latency, \
                 the mean is {} % off",
                late * 100.0,
                signed(self.mean_error() * 100.0, 1)
            );
            self.reasons.push(why);
        }
        if self.backing_waits > 0 && verdict != Verdict::Exact {
            self.reasons.push(format!(
                "{} completions waited for the disk under the backing file, up to {:.1} ms: put \
                 it on a faster one, or leave it out",
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
                "the loop was stopped for {} ms",
                self.overslept_max_ns / 1_000_000
            ),
        );
        spoil(self.suspended, "the machine was suspended".to_owned());
        self.reasons.extend(self.hidden_owners());
        if !self.margin.realtime {
            self.reasons
                .push("no real-time priority: give CAP_SYS_NICE".to_owned());
        }
        self.verdict = Some(verdict);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred commands of 1 ms, each late by `late_us`.
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
    fn verdicts_follow_the_table() {
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
    fn what_spoils_a_run() {
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
    fn hidden_owners_are_told_where_the_scheduler_needs_them() {
        let told = |per_process, program, kernel| {
            let mut a = run(0);
            a.per_process = per_process;
            (a.owners.program, a.owners.kernel) = (program, kernel);
            // The times are right nevertheless.
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
    fn what_is_taken_off_for_the_way_is_no_error() {
        // A model latency of 1 ms, transport of 0.1 ms: the reply is due, and sent, at 0.9 ms.
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
    fn seconds_and_means() {
        let a = run(10);
        assert_eq!(a.seconds.len(), 1);
        assert_eq!((a.seconds[0].done, a.seconds[0].late_max_ns), (100, 10_000));
        assert!((a.mean_error() - 0.01).abs() < 1e-9);
    }
}
