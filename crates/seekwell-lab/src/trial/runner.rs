//! Makes the periods of a trial: switch, washout, measurement under the guard.

use super::{CarryOver, Figure, Followed, Guard, GuardRule, LABEL, Length, carry_over};
use crate::conduct::{Job, Measured, NoRun, Runner};
use crate::stats;
use seekwell::result::{Direction, Early, Operation, Record};
use seekwell::{Cancel, Progress, RunSpec, Substrate};
use seekwell_core::result::OpSecond;
use seekwell_host::observe::{Interval, Side};
use seekwell_host::watch::Buckets;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Length of an observed interval, s.
const TICK_S: f64 = 1.0;
/// A scheduler is not tried again after the guard ended this number of its periods.
const STOPS_MOST: u32 = 3;

/// Name of the metric with the length of the washout, s.
pub(super) const WASHOUT: &str = "washout";

/// The machine of a trial.
pub trait Bed: Sync {
    /// Sets the scheduler and the settings of a period.
    ///
    /// # Errors
    /// The kernel rejects a setting.
    fn set(&self, spec: &RunSpec) -> Result<(), String>;
    /// Sets the scheduler and all settings that were active before the trial. Returns the settings
    /// that differ from the defaults of a newly set scheduler.
    ///
    /// # Errors
    /// The kernel rejects a setting.
    fn set_original(&self, spec: &RunSpec) -> Result<Vec<String>, String> {
        self.set(spec).map(|()| Vec::new())
    }
    /// Waits, and returns early if the token is set.
    fn wait(&self, seconds: f64, cancel: &Cancel);
    /// Returns what happened since the previous call. `user` forces a reading of slow metrics.
    fn since_last(&self, user: bool) -> Interval;
    /// Returns the reason if another program set the scheduler during the period, and notes about
    /// other changes.
    fn interference(&self, _spec: &RunSpec) -> (Option<String>, Vec<String>) {
        (None, Vec::new())
    }
    /// Returns the reason if no further period is possible.
    fn over(&self) -> Option<String> {
        None
    }
    /// Adds the settings of the machine to the record.
    fn describe(&self, _spec: &RunSpec, _record: &mut Record) {}
}

/// Receives the progress of a trial.
pub trait Told: Sync {
    /// The guard ended a period.
    fn guarded(&self, _scheduler: &str, _why: &str) {}
}

impl Told for () {}

/// What the baseline showed.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// Each second.
    pub seconds: Vec<Interval>,
    /// The sum of the seconds.
    pub total: Interval,
}

impl Baseline {
    /// Returns the value of a figure in each second, if the second has one.
    pub fn values(&self, figure: &Figure) -> Vec<Option<f64>> {
        let all = self.seconds.iter();
        all.map(|s| figure.value(s)).collect()
    }
    /// Returns the mean of the values of all seconds, with which the guard compares each second.
    pub fn typical(&self, figure: &Figure) -> Option<f64> {
        let all: Vec<f64> = self.values(figure).into_iter().flatten().collect();
        (!all.is_empty()).then(|| stats::mean(&all))
    }
}

/// Observes the seconds of a part. `whole`: slow metrics are also read at its end.
fn observe(
    bed: &dyn Bed,
    seconds: f64,
    cancel: &Cancel,
    whole: bool,
    each: &mut dyn FnMut(&Interval) -> bool,
) -> Vec<Interval> {
    let mut all = Vec::new();
    let mut left = seconds;
    while left > 1e-9 && !cancel.is_set() {
        let step = left.min(TICK_S);
        bed.wait(step, cancel);
        left -= step;
        let i = bed.since_last(whole && left <= 1e-9);
        let go_on = each(&i);
        all.push(i);
        if !go_on {
            break;
        }
    }
    all
}

fn sum(seconds: &[Interval]) -> Interval {
    let mut total = Interval::default();
    seconds.iter().for_each(|s| total.add(s));
    total
}

/// Observes the machine without a change.
pub fn baseline(bed: &dyn Bed, seconds: f64, cancel: &Cancel) -> Baseline {
    bed.since_last(true);
    let seconds = observe(bed, seconds, cancel, true, &mut |_| true);
    Baseline {
        total: sum(&seconds),
        seconds,
    }
}

/// What the guard watches.
struct Watched {
    rule: GuardRule,
    figure: Figure,
    /// Value of the figure in the baseline.
    typical: f64,
    /// Whether reads, and writes, completed in each second of the baseline.
    steady: [bool; 2],
    /// Value of the first metric at which a period without a value counts.
    limit: f64,
}

/// Makes the periods of a trial, one at a time.
pub struct Periods<'a> {
    bed: &'a dyn Bed,
    length: Length,
    figures: &'a [Figure],
    guard: Option<Watched>,
    /// The scheduler that was active before the trial, without tunables: it stands for all settings
    /// of that time.
    original: RunSpec,
    stops: Mutex<BTreeMap<usize, u32>>,
    /// The last treatment, and each period with its predecessor.
    followed: Mutex<(Option<usize>, Vec<Followed>)>,
    told: &'a dyn Told,
}

impl<'a> Periods<'a> {
    /// Returns the runner. `original` is the specification of the scheduler that was active before,
    /// without tunables. Its periods use the settings of before the trial, and are not guarded. The
    /// guard watches the first figure, or the mean latency instead of a percentile: a second has
    /// too few requests for a percentile.
    pub fn new(
        bed: &'a dyn Bed,
        length: Length,
        figures: &'a [Figure],
        guard: Option<GuardRule>,
        baseline: &Baseline,
        original: RunSpec,
        told: &'a dyn Told,
    ) -> Periods<'a> {
        let first = &figures[0];
        let figure = match first {
            Figure::ReadP99 => Figure::ReadMean,
            Figure::WriteP99 => Figure::WriteMean,
            other => other.clone(),
        };
        let seconds = &baseline.seconds;
        let steady = |of: fn(&Interval) -> &Side| {
            !seconds.is_empty() && seconds.iter().all(|s| of(s).ios > 0)
        };
        let guard = guard.map(|rule| Watched {
            steady: [steady(|s| &s.read), steady(|s| &s.write)],
            typical: baseline.typical(&figure).unwrap_or(0.0),
            limit: first.value(&baseline.total).unwrap_or(0.0)
                * match first.higher_is_better() {
                    true => 1.0 / rule.times,
                    false => rule.times,
                },
            rule,
            figure,
        });
        Periods {
            bed,
            length,
            figures,
            guard,
            original,
            stops: Mutex::default(),
            followed: Mutex::default(),
            told,
        }
    }

    fn stops(&self, treatment: usize) -> u32 {
        let stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        stops.get(&treatment).copied().unwrap_or(0)
    }

    /// Returns whether the periods depended on their predecessors. `None` if there are too few.
    pub fn carry_over(&self) -> Option<CarryOver> {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        carry_over(&followed.1)
    }

    /// Remembers a period for the test of carry-over. A period without a value has no successor.
    fn follow(&self, job: &Job, record: &Record) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let value = record.metric.as_ref().map(|m| m.value);
        let whole = value.filter(|v| *v > 0.0 && record.early.is_none());
        let before = std::mem::replace(&mut followed.0, whole.map(|_| job.treatment));
        if let (Some(before), Some(value)) = (before, whole) {
            followed.1.push(Followed {
                block: job.key.block as usize,
                treatment: job.treatment,
                before,
                log: libm::log(value),
            });
        }
    }

    /// Sets the settings of before the trial, and counts the stop.
    fn back(&self, treatment: usize) -> Result<(), String> {
        let mut stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        *stops.entry(treatment).or_default() += 1;
        drop(stops);
        self.bed.set_original(&self.original).map(drop)
    }

    /// Observes a part of a period under a guard. Returns its seconds, and the reason if the guard ended it.
    fn part(
        &self,
        seconds: f64,
        (guard, whole): (&mut Option<Guard>, bool),
        cancel: &Cancel,
    ) -> (Vec<Interval>, Option<String>) {
        let mut why = None;
        let all = observe(self.bed, seconds, cancel, whole, &mut |i| {
            why = guard.as_mut().and_then(|g| g.take(i));
            why.is_none()
        });
        (all, why)
    }

    fn period(&self, job: &Job, cancel: &Cancel) -> Result<Record, NoRun> {
        let spec = &job.spec;
        let cut = || NoRun::Cut("stopped".to_owned(), None);
        if self.stops(job.treatment) >= STOPS_MOST {
            return Err(NoRun::Failed(format!(
                "not tried again, because the guard ended {STOPS_MOST} periods of {}",
                spec.scheduler_label()
            )));
        }
        let own = spec.scheduler == self.original.scheduler;
        let kept = match own {
            true => self.bed.set_original(spec),
            false => self.bed.set(spec).map(|()| Vec::new()),
        };
        let kept = kept.map_err(NoRun::Failed)?;
        let guarded = self.guard.as_ref().filter(|_| !own);
        let mut guard = guarded.map(|w| Guard::new(w.rule, w.figure.clone(), w.typical, w.steady));
        self.bed.since_last(true);
        let (washout, mut why) = self.part(self.length.washout_s, (&mut guard, false), cancel);
        // If the guard ends the washout, its seconds are all that was measured.
        let mut seconds = Vec::new();
        if cancel.is_set() {
            return Err(cut());
        }
        if why.is_none() {
            self.bed.since_last(true);
            (seconds, why) = self.part(self.length.period_s, (&mut guard, true), cancel);
        }
        if cancel.is_set() {
            return Err(cut());
        }
        if let Some(why) = self.bed.over() {
            cancel.set();
            return Err(NoRun::Cut(why, None));
        }
        let (other, notes) = self.bed.interference(spec);
        if let Some(other) = other {
            return Err(NoRun::Failed(other));
        }
        let (counted, washed_s) = match seconds.is_empty() {
            true => (&washout, 0.0),
            false => (&seconds, sum(&washout).span_ns as f64 / 1e9),
        };
        let mut record = self.record(spec, counted, &washout, washed_s);
        self.bed.describe(spec, &mut record);
        if let Some(why) = &why {
            self.told.guarded(&spec.scheduler_label(), why);
            // If the old scheduler cannot be set, the trial must not go on.
            self.back(job.treatment).map_err(|e| {
                cancel.set();
                NoRun::Failed(e)
            })?;
        }
        if record.metric.is_none() {
            // A period that the guard ended without a value counts with the limit of the guard.
            let figure = &self.figures[0];
            let limit = self.guard.as_ref().filter(|_| why.is_some());
            let limit = limit.map(|w| figure.metric(w.limit, 0));
            let none = || format!("no value of {} in this period", figure.name());
            record.metric = Some(limit.ok_or_else(|| NoRun::Failed(none()))?);
        }
        if !kept.is_empty() {
            let kept = kept.join(", ");
            record
                .warnings
                .push(format!("settings of before the trial: {kept}"));
        }
        record.warnings.extend(notes);
        record.early = why.map(|why| Early {
            why,
            at_ns: record.duration_ns,
            limit: false,
        });
        record.spec_hash = spec.hash();
        record.spec = Some(spec.clone());
        Ok(record)
    }

    /// Returns the record of a period. `washed_s` is the length of the washout before its seconds.
    fn record(
        &self,
        spec: &RunSpec,
        seconds: &[Interval],
        washout: &[Interval],
        washed_s: f64,
    ) -> Record {
        let total = sum(seconds);
        let span = (total.span_ns as f64).max(1.0);
        let all = self.figures.iter().chain(&super::figure::MEASURED);
        let mut metrics: Vec<seekwell::result::Metric> = Vec::new();
        for f in all {
            let n = total.read.ios + total.write.ios;
            let known = metrics.iter().any(|m| m.name == f.name());
            if let Some(value) = f.value(&total).filter(|_| !known) {
                metrics.push(f.metric(value, n));
            }
        }
        let mut add = |name: &str, unit: &str, value: f64| {
            metrics.push(seekwell::result::Metric {
                name: name.to_owned(),
                unit: unit.to_owned(),
                value,
                ..Default::default()
            });
        };
        add(WASHOUT, "s", washed_s);
        add("device busy", "%", 100.0 * total.busy_ns as f64 / span);
        add("queue depth", "requests", total.queue_ns as f64 / span);
        add(
            "kernel CPU",
            "% of a core",
            100.0 * total.kernel_cpu_ns as f64 / span,
        );
        let washed = sum(washout);
        if let Some(value) = self.figures[0].value(&washed) {
            let m = self.figures[0].metric(value, 0);
            add(&format!("{} in the washout", m.name), &m.unit, value);
        }
        let direction = |s: &Side| Direction {
            ios: s.ios,
            bytes: s.bytes,
            latency: s.latency.latency(),
            ..Direction::default()
        };
        let mut operations = Vec::new();
        for (kind, side) in [("read", 0), ("write", 1)] {
            operations.extend(operation(kind, seconds, side));
        }
        let first = metrics
            .iter()
            .position(|m| m.name == self.figures[0].name());
        let metric = first.map(|i| metrics.remove(i));
        Record {
            schema: seekwell_core::result::SCHEMA,
            seekwell: env!("CARGO_PKG_VERSION").to_owned(),
            build: seekwell_core::result::BUILD.to_owned(),
            substrate: spec.substrate.name().to_owned(),
            workload: LABEL.to_owned(),
            params: match &spec.workload {
                seekwell::WorkloadSpec::Script { params, .. } => params.clone(),
                _ => BTreeMap::new(),
            },
            seed: spec.run_seed(),
            duration_ns: total.span_ns,
            read: direction(&total.read),
            write: direction(&total.write),
            requests: total.read.ios + total.write.ios,
            device_busy_ns: total.busy_ns,
            depth_mean: total.queue_ns as f64 / span,
            operations,
            metric,
            more_metrics: metrics,
            warnings: total.errors,
            ..Record::default()
        }
    }
}

/// Returns the seconds of one direction (0: reads, 1: writes). `None` if there are no requests.
fn operation(kind: &str, seconds: &[Interval], direction: usize) -> Option<Operation> {
    let mut latency = Buckets::default();
    let mut o = Operation {
        kind: kind.to_owned(),
        ..Operation::default()
    };
    for i in seconds {
        let s = [&i.read, &i.write][direction];
        o.bytes += s.bytes;
        latency.merge(&s.latency);
        let mean_us = (s.wait_ns / 1000).checked_div(s.ios).unwrap_or(0);
        o.seconds.push(OpSecond {
            ops: s.ios,
            bytes: s.bytes,
            latency_sum_ns: s.wait_ns,
            latency_max_ns: s.latency.max_ns(),
            latency_square_us2: mean_us.saturating_mul(mean_us).saturating_mul(s.ios),
        });
        o.ended_ns += i.span_ns;
    }
    o.latency = latency.latency();
    o.seconds.iter().any(|s| s.ops > 0).then_some(o)
}

impl Runner for Periods<'_> {
    fn run(
        &self,
        job: &Job,
        cancel: &Cancel,
        _told: &mut dyn FnMut(Progress),
    ) -> Result<Measured, NoRun> {
        if let Some(why) = self.bed.over() {
            cancel.set();
            return Err(NoRun::Cut(why, None));
        }
        if cancel.is_set() {
            return Err(NoRun::Cut("not begun".to_owned(), None));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.ok().filter(|_| job.spec.substrate == Substrate::Host);
        let began_unix_ns = now.and_then(|d| u64::try_from(d.as_nanos()).ok());
        let period = self.period(job, cancel).inspect_err(|_| {
            // The next period follows a period whose effect is not known.
            let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
            followed.0 = None;
        });
        let record = period?;
        self.follow(job, &record);
        let mut measured = Measured::from_record(record);
        measured.began_unix_ns = began_unix_ns;
        Ok(measured)
    }
}
