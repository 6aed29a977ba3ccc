//! Observes the I/O of devices while other programs work: the kernel's counters of each device,
//! latency histograms, the CPU time of the kernel, and metrics that the user names.
//!
//! Nothing is started on the disk, and nothing is changed. [`Observer::since_last`] returns what
//! happened since the previous call.

mod source;
mod stat;
mod user;

pub use user::{MetricError, UserMetric};

use crate::block::{Device, Tree};
use crate::watch::{Buckets, Latencies, LatencyCounts};
use stat::DeviceStat;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use user::Reading;

/// What one direction did in an interval.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Number of completed requests.
    pub ios: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Sum of the latencies of these requests, ns.
    pub wait_ns: u64,
    /// Number of requests in the device at the end of the interval.
    pub in_flight: u64,
    /// Latencies by a histogram of the kernel; empty without BPF.
    pub latency: Buckets,
}

impl Side {
    /// Adds another interval.
    pub fn add(&mut self, o: &Side) {
        self.ios += o.ios;
        self.bytes += o.bytes;
        self.wait_ns += o.wait_ns;
        self.in_flight = o.in_flight;
        self.latency.merge(&o.latency);
    }
}

/// What happened in an interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Length, ns.
    pub span_ns: u64,
    /// Reads of all devices.
    pub read: Side,
    /// Writes of all devices. Flushes are not counted.
    pub write: Side,
    /// Time in which a device had at least one request, ns. With several devices, their mean.
    pub busy_ns: u64,
    /// Integral of the number of requests over time, ns.
    pub queue_ns: u64,
    /// Number of requests in the scheduler or in the device at the end of the interval. Before Linux
    /// 6.16, the kernel counts only those in the device.
    pub waiting: u64,
    /// CPU time of the kernel (system calls, interrupts) on all cores, ns.
    pub kernel_cpu_ns: u64,
    /// For each metric of the user: the sum and the weight of the readings. The value of a metric is
    /// the sum divided by the weight. `None` if there was no reading.
    pub user: Vec<Option<(f64, f64)>>,
    /// Errors of the user's metrics.
    pub errors: Vec<String>,
}

impl Interval {
    /// Adds a later interval.
    pub fn add(&mut self, o: &Interval) {
        self.span_ns += o.span_ns;
        self.read.add(&o.read);
        self.write.add(&o.write);
        self.busy_ns += o.busy_ns;
        self.queue_ns += o.queue_ns;
        self.waiting = o.waiting;
        self.kernel_cpu_ns += o.kernel_cpu_ns;
        self.user.resize(self.user.len().max(o.user.len()), None);
        for (to, from) in self.user.iter_mut().zip(&o.user) {
            *to = match (*to, *from) {
                (Some(a), Some(b)) => Some((a.0 + b.0, a.1 + b.1)),
                (a, b) => a.or(b),
            };
        }
        for e in &o.errors {
            if !self.errors.contains(e) {
                self.errors.push(e.clone());
            }
        }
    }
    /// Returns the value of a metric of the user.
    pub fn user_value(&self, metric: usize) -> Option<f64> {
        let (sum, weight) = (*self.user.get(metric)?)?;
        (weight > 0.0).then(|| sum / weight)
    }
}

/// The metrics of the user may take this part of the time. A slow command is run less often.
const USER_SHARE: f64 = 0.05;

/// The counters at the previous call.
struct Last {
    at: Instant,
    stats: Vec<DeviceStat>,
    latencies: Option<LatencyCounts>,
    kernel_cpu_ns: u64,
}

/// Observes a set of devices.
pub struct Observer {
    /// Directories of the devices in sysfs.
    dirs: Vec<PathBuf>,
    tree: Tree,
    latencies: Option<Latencies>,
    user: Vec<Reading>,
    last: Last,
    user_due: Instant,
}

impl Observer {
    /// Starts to observe. The second value says why there are no histograms of latencies, if there
    /// are none.
    ///
    /// # Errors
    /// A metric of the user cannot be read.
    pub fn begin(
        tree: &Tree,
        devices: &[Device],
        histograms: bool,
        user: &[UserMetric],
    ) -> Result<(Observer, Option<String>), MetricError> {
        let numbers: Vec<u32> = devices
            .iter()
            .filter_map(|d| d.numbers.map(|(major, minor)| major << 20 | minor))
            .collect();
        let opened = histograms.then(|| Latencies::open(&numbers));
        let (latencies, why) = match opened {
            None => (None, None),
            Some(Ok(l)) => (Some(l), None),
            Some(Err(e)) => (None, Some(e.to_string())),
        };
        let block = tree.at("/sys/block");
        let mut observer = Observer {
            dirs: devices.iter().map(|d| block.join(&d.name)).collect(),
            tree: tree.clone(),
            latencies,
            user: user.iter().map(Reading::new).collect(),
            last: Last {
                at: Instant::now(),
                stats: Vec::new(),
                latencies: None,
                kernel_cpu_ns: 0,
            },
            user_due: Instant::now(),
        };
        for u in &mut observer.user {
            u.begin()?;
        }
        observer.last = observer.now(&mut Vec::new());
        Ok((observer, why))
    }

    fn now(&self, errors: &mut Vec<String>) -> Last {
        let latencies = self.latencies.as_ref().and_then(|l| {
            let failed = |e| errors.push(format!("the histograms cannot be read: {e}"));
            l.read().map_err(failed).ok()
        });
        Last {
            stats: self.dirs.iter().map(|p| DeviceStat::read(p)).collect(),
            latencies,
            kernel_cpu_ns: stat::kernel_cpu_ns(&self.tree),
            at: Instant::now(),
        }
    }

    /// Returns what happened since the previous call. `read_user` forces a reading of the user's
    /// metrics; otherwise slow metrics are read less often.
    pub fn since_last(&mut self, read_user: bool) -> Interval {
        let mut errors = Vec::new();
        let now = self.now(&mut errors);
        let last = std::mem::replace(&mut self.last, now);
        let now = &self.last;
        let mut all = Interval {
            span_ns: nanos(now.at - last.at),
            kernel_cpu_ns: now.kernel_cpu_ns.saturating_sub(last.kernel_cpu_ns),
            errors,
            ..Interval::default()
        };
        for (a, b) in last.stats.iter().zip(&now.stats) {
            b.add_since(a, &mut all);
        }
        all.busy_ns /= (self.dirs.len() as u64).max(1);
        if let (Some(a), Some(b)) = (&last.latencies, &now.latencies) {
            let new = b.since(a);
            (all.read.latency, all.write.latency) = (new.reads(), new.writes());
            // The kernel prints its sums in ms, which is too coarse for a fast device.
            for (side, sum) in [&mut all.read, &mut all.write]
                .into_iter()
                .zip(new.sums_ns())
            {
                let counted = side.latency.count();
                if counted > 0 {
                    side.wait_ns = (sum as f64 / counted as f64 * side.ios as f64) as u64;
                }
            }
        }
        if read_user || now.at >= self.user_due {
            let began = Instant::now();
            for u in &mut self.user {
                match u.read() {
                    Ok(value) => all.user.push(value),
                    Err(e) => {
                        all.errors.push(e.to_string());
                        all.user.push(None);
                    }
                }
            }
            let pause = began.elapsed().div_f64(USER_SHARE);
            self.user_due = Instant::now() + pause.max(Duration::from_millis(500));
        }
        all
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_up_to_their_sum() {
        let mut a = Interval {
            span_ns: 10,
            user: vec![Some((5.0, 1.0)), None],
            errors: vec!["x".to_owned()],
            ..Interval::default()
        };
        a.read.ios = 3;
        let mut b = a.clone();
        b.user = vec![Some((1.0, 2.0)), Some((8.0, 4.0))];
        a.add(&b);
        assert_eq!((a.span_ns, a.read.ios, a.errors.len()), (20, 6, 1));
        assert_eq!((a.user_value(0), a.user_value(1)), (Some(2.0), Some(2.0)));
        assert_eq!(a.user_value(2), None);
    }
}
