//! A network volume of a cloud provider, with a latency and two token buckets: one for operations,
//! one for bytes.
//!
//! An operation of up to 256 KiB costs one token. A larger operation costs one token per 256 KiB.
//! The bucket for operations fills at the base rate of the volume, and empties at most at its burst
//! rate. The bucket for bytes works in the same way; by default it saves no tokens for a burst. An
//! operation takes its tokens even if the bucket holds fewer. Then the bucket is in debt, and the
//! next operation waits until the debt is refilled. Operations wait in order of arrival. Latencies
//! are drawn from a log-normal distribution.
//!
//! The model leaves out the limits of the virtual machine, multi-attach, the slow first read of a
//! block restored from a snapshot, and replication pauses.

use crate::constant::out_of_range;
use crate::error::ParamError;
use crate::preset::{Def, Dim, Preset, nanos};
use rand::RngCore;
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_core::{
    Accept, Command, Device, DeviceFacts, DeviceStats, Done, Instant, Nanos, Op, Sector, Sectors,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Every parameter of the kind `cloud`.
#[rustfmt::skip]
pub static DEFS: &[Def] = &[
    Def::new("capacity", Dim::Bytes, None, (1e6, 1e15), "size of the volume"),
    Def::new("iops", Dim::Real("IOPS"), Some("3000"), (1.0, 1e7),
        "sustained rate, operations per second"),
    Def::new("burst_iops", Dim::Real("IOPS"), Some("3000"), (1.0, 1e7),
        "burst rate while credits last, operations per second"),
    Def::new("credits", Dim::Real("operations"), Some("0"), (0.0, 1e9),
        "maximum number of operations that can be saved as credits; also the credits at the start"),
    Def::new("bandwidth", Dim::Rate, Some("131"), (0.1, 1e5),
        "sustained data rate"),
    Def::new("burst_bandwidth", Dim::Rate, None, (0.1, 1e5),
        "burst data rate while byte credits last; absent: as bandwidth"),
    Def::new("byte_credits", Dim::Bytes, Some("0"), (0.0, 1e15),
        "maximum amount of data that can be saved as credits; also the credits at the start"),
    Def::new("unit", Dim::Bytes, Some("256KiB"), (512.0, 1e8),
        "an operation of up to this size counts as one"),
    Def::new("read_latency", Dim::Time, Some("0.7"), (0.001, 1000.0),
        "median latency of a small read"),
    Def::new("write_latency", Dim::Time, Some("0.9"), (0.001, 1000.0),
        "median latency of a small write"),
    Def::new("sigma", Dim::Real("ln"), Some("0.25"), (0.0, 3.0),
        "spread of the latency, standard deviation of its logarithm"),
    Def::new("stream", Dim::Rate, Some("1000"), (0.1, 1e5),
        "transfer rate of a single command"),
    Def::new("depth", Dim::Count("commands"), Some("128"), (1.0, 65_536.0),
        "maximum number of commands accepted at a time"),
    Def::new("hw_queues", Dim::Count("queues"), Some("2"), (1.0, 1024.0),
        "hardware queues"),
];

/// A token bucket, full at the start. Instead of a number of tokens, it stores the time at which
/// the bucket will be full again (`spent`). At the time `now`, before `spent`, the bucket holds
/// `(most - (spent - now)) / base` tokens. A negative number is a debt.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Time per token at the base rate (`base`) and at the burst rate (`burst`), in 1/1024 ns.
    base: u64,
    burst: u64,
    /// Maximum credit, as the time in which the bucket fills at the base rate, in 1/1024 ns.
    most: u64,
    /// Time at which the bucket will be full again if no more tokens are taken, in 1/1024 ns. If
    /// this time has passed, the bucket is full. 64 bits would overflow after 208 days.
    spent: u128,
    /// Earliest time at which the burst rate permits the next operation, in 1/1024 ns.
    next: u128,
}

impl Bucket {
    fn new(rate: f64, burst: f64, credits: f64) -> Bucket {
        let base = (1024e9 / rate) as u64;
        Bucket {
            base,
            burst: (1024e9 / burst.max(rate)) as u64,
            most: (base as f64 * credits) as u64,
            spent: 0,
            next: 0,
        }
    }
    /// Takes `n` tokens for an operation that arrives at `now`. Returns the time at which the
    /// operation may proceed. Both times are in 1/1024 ns.
    fn pay(&mut self, now: u128, n: u64) -> u128 {
        self.spent = self.spent.max(now);
        let empty = self.spent.saturating_sub(u128::from(self.most));
        let at = now.max(self.next).max(empty);
        self.spent += u128::from(n) * u128::from(self.base);
        self.next = at + u128::from(n) * u128::from(self.burst);
        at
    }
}

/// A cloud volume; see the module.
#[derive(Debug, Clone)]
pub struct Cloud {
    facts: DeviceFacts,
    rng: Pcg64Mcg,
    operations: Bucket,
    bytes: Bucket,
    unit: u64,
    latency: [f64; 2],
    sigma: f64,
    sector_ps: u64,
    out: BinaryHeap<Reverse<(Instant, u64, u32, bool)>>,
    sequence: u64,
    busy_to: Instant,
    stats: DeviceStats,
}

impl Cloud {
    /// Makes a volume. The seed determines its random latencies.
    pub fn new(p: &Preset, seed: u64) -> Result<Self, ParamError> {
        let (iops, burst) = (p.num("iops")?, p.num("burst_iops")?);
        if burst < iops {
            return Err(ParamError::new(
                "burst_iops",
                format!("a burst of {burst} IOPS is below the base rate of {iops}"),
                "make burst_iops at least iops",
            ));
        }
        let bandwidth = p.num("bandwidth")?;
        let burst_bandwidth = p.num_opt("burst_bandwidth").unwrap_or(bandwidth);
        if burst_bandwidth < bandwidth {
            return Err(ParamError::new(
                "burst_bandwidth",
                format!(
                    "a burst of {burst_bandwidth} MB/s is below the base rate of {bandwidth} MB/s"
                ),
                "make burst_bandwidth at least bandwidth",
            ));
        }
        let sectors = Sector((p.num("capacity")? / 512.0) as u64);
        let facts = DeviceFacts {
            hw_queues: p.num("hw_queues")? as u16,
            max_sectors: Sectors(2048),
            physical_block_bytes: 4096,
            ..DeviceFacts::plain(&p.name, sectors, p.num("depth")? as u32)
        };
        // In the bucket for bytes, one token is one sector.
        let tokens = |mb: f64| mb * 1e6 / 512.0;
        let byte_credits = p.num("byte_credits")? / 512.0;
        Ok(Cloud {
            facts,
            rng: rng::stream(seed, "cloud"),
            operations: Bucket::new(iops, burst, p.num("credits")?),
            bytes: Bucket::new(tokens(bandwidth), tokens(burst_bandwidth), byte_credits),
            unit: (p.num("unit")? / 512.0) as u64,
            latency: [p.num("read_latency")?, p.num("write_latency")?],
            sigma: p.num("sigma")?,
            sector_ps: (512e6 / p.num("stream")?) as u64,
            out: BinaryHeap::new(),
            sequence: 0,
            busy_to: Instant::default(),
            stats: DeviceStats::default(),
        })
    }
    /// Returns a random latency of one operation.
    fn draw(&mut self, write: bool) -> Nanos {
        // The sum of twelve uniform numbers approximates a normal deviate up to three standard
        // deviations.
        let sum: f64 = (0..12)
            .map(|_| self.rng.next_u64() as f64 / 18_446_744_073_709_551_616.0)
            .sum();
        nanos(self.latency[usize::from(write)] * libm::exp(self.sigma * (sum - 6.0)))
    }
}

impl Device for Cloud {
    fn accept(&mut self, now: Instant, c: Command) -> Accept {
        if self.out.len() >= self.facts.commands() {
            return Accept::Busy;
        }
        let error = out_of_range(&c, self.facts.capacity);
        let n = u64::from(c.sectors.0);
        let mut at = now;
        if !error && c.op != Op::Flush && c.op != Op::Discard {
            let t = u128::from(now.0) << 10;
            let paid = self.operations.pay(t, n.div_ceil(self.unit).max(1));
            // In the bucket for bytes, one token is one sector. The tokens that this operation
            // takes delay the next operations, not this one.
            let moved = self.bytes.pay(t, n);
            let at_ns = paid.max(moved).div_ceil(1 << 10);
            at = Instant(u64::try_from(at_ns).unwrap_or(u64::MAX));
            at = at + Nanos(n * self.sector_ps / 1000);
        }
        at = at + self.draw(c.op.is_write());
        self.stats.media_ops += 1;
        self.stats.busy += at.since(self.busy_to.max(now));
        self.busy_to = self.busy_to.max(at);
        self.sequence += 1;
        self.out.push(Reverse((at, self.sequence, c.id, error)));
        Accept::Accepted
    }
    fn next_event(&self) -> Option<Instant> {
        self.out.peek().map(|d| d.0.0)
    }
    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        while let Some(Reverse((at, _, id, error))) = self.out.peek().copied()
            && at <= to
        {
            self.out.pop();
            out.push(Done { id, at, error });
        }
    }
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stats(&self) -> DeviceStats {
        self.stats
    }
    fn state(&self, out: &mut String) {
        use std::fmt::Write;
        let _ = write!(out, "{} inside", self.out.len());
    }
}
