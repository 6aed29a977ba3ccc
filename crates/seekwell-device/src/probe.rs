//! A simple client that keeps a device busy. Validation, tests and speed measurements use it.

use crate::error::DeviceError;
use rand::RngCore;
use seekwell_core::rng;
use seekwell_core::{Accept, Command, Device, Done, Instant, Nanos, Op, Sector, Sectors};

/// The results of a run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Time from the first submission to the last completion.
    pub took: Nanos,
    /// Latency of each command in ns, in order of completion.
    pub latency_ns: Vec<u64>,
    /// Number of sectors transferred.
    pub sectors: u64,
}

impl Run {
    /// Returns the number of commands per second.
    pub fn iops(&self) -> f64 {
        self.latency_ns.len() as f64 / self.took.as_secs_f64()
    }
    /// Returns the rate in MB/s (10^6 bytes per second).
    pub fn mb(&self) -> f64 {
        self.sectors as f64 * 512.0 / 1e6 / self.took.as_secs_f64()
    }
    /// Returns the mean latency, in ms.
    pub fn mean_ms(&self) -> f64 {
        let sum: u64 = self.latency_ns.iter().sum();
        sum as f64 / self.latency_ns.len() as f64 / 1e6
    }
    /// Returns the latency, in ms, that the fraction `share` of the commands does not exceed
    /// (nearest rank).
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let mut all = self.latency_ns.clone();
        all.sort_unstable();
        let rank = libm::ceil(share * all.len() as f64) as usize;
        all[rank.clamp(1, all.len()) - 1] as f64 / 1e6
    }
}

/// Makes a command of `n` sectors at `lba`. The client sets its id.
pub fn command(op: Op, lba: u64, n: u32) -> Command {
    Command {
        id: 0,
        op,
        sector: Sector(lba),
        sectors: Sectors(n),
        fua: false,
    }
}

/// A client with its own clock, and the device to which it sends commands.
#[derive(Debug)]
pub struct Client<D> {
    /// The device.
    pub device: D,
    /// Current time of the client.
    pub now: Instant,
    sent: Vec<(Instant, u32)>,
    idle: Vec<u32>,
    done: Vec<Done>,
}

impl<D: Device> Client<D> {
    /// Makes a client at time 0.
    pub fn new(device: D) -> Self {
        Client {
            device,
            now: Instant::START,
            sent: vec![],
            idle: vec![],
            done: vec![],
        }
    }
    /// Advances the clock by `d`.
    pub fn sleep(&mut self, d: Nanos) {
        self.now = self.now + d;
        self.device.advance(self.now, &mut self.done);
        self.done.clear();
    }
    /// Runs `n` commands and keeps up to `depth` of them in flight. `next` returns the i-th
    /// command. After a completion, the client waits for `think` before it sends the next command.
    pub fn run(
        &mut self,
        n: usize,
        depth: usize,
        think: Nanos,
        mut next: impl FnMut(usize) -> Command,
    ) -> Run {
        let mut out = Run {
            latency_ns: Vec::with_capacity(n),
            ..Run::default()
        };
        self.sent.resize(depth, (Instant::START, 0));
        self.idle.clear();
        self.idle.extend((0..depth as u32).rev());
        let start = self.now;
        let mut i = 0;
        while out.latency_ns.len() < n {
            while i < n {
                let Some(id) = self.idle.pop() else { break };
                let c = Command { id, ..next(i) };
                if self.device.accept(self.now, c) == Accept::Busy {
                    self.idle.push(id);
                    break;
                }
                self.sent[id as usize] = (self.now, c.sectors.0);
                i += 1;
            }
            let Some(t) = self.device.next_event() else {
                break;
            };
            self.now = self.now.max(t);
            self.device.advance(self.now, &mut self.done);
            for d in self.done.drain(..) {
                let (at, sectors) = self.sent[d.id as usize];
                out.latency_ns.push(d.at.since(at).0);
                out.sectors += u64::from(sectors);
                self.idle.push(d.id);
                out.took = d.at.since(start);
                self.now = self.now.max(d.at + think);
            }
        }
        out
    }
    /// Sends one command, waits for its completion, and returns its latency.
    pub fn send(&mut self, c: Command) -> Nanos {
        Nanos(self.run(1, 1, Nanos::ZERO, |_| c).latency_ns[0])
    }
}

/// [`best_rate`] sends this number of commands per slot of the device's queue.
const ROUNDS: usize = 16;
/// [`best_rate`] sends at least this number of commands.
const LEAST: usize = 2048;

/// Returns the best rate of a new device, in commands per second. It is the higher of two rates:
/// random reads and random writes of 4 KiB, both at the full queue depth of the device.
pub fn best_rate(spec: &str, seed: u64) -> Result<f64, DeviceError> {
    let mut best = 0.0f64;
    for op in [Op::Read, Op::Write] {
        let device = crate::open(spec, seed)?;
        let facts = device.facts();
        let (places, depth) = ((facts.capacity.0 / 8).max(1), facts.depth.max(1) as usize);
        let mut rng = rng::stream(seed, "best rate");
        let next = |_| command(op, rng.next_u64() % places * 8, 8);
        let run = Client::new(device).run((ROUNDS * depth).max(LEAST), depth, Nanos::ZERO, next);
        best = best.max(run.iops());
    }
    Ok(best)
}

/// Returns a uniformly distributed random number in [0, n).
pub fn below(rng: &mut rng::Pcg64Mcg, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_rate_equals_the_models_rate() {
        let rate = |spec| best_rate(spec, 1).expect(spec);
        // Four parallel commands take 100 us each. After that, commands are sent one at a time.
        let four = rate("constant:service_us=100,depth=4,servers=parallel");
        assert!((four / 40_000.0 - 1.0).abs() < 0.01, "{four}");
        let one = rate("constant:service_us=100,depth=4");
        assert!((one / 10_000.0 - 1.0).abs() < 0.01, "{one}");
        assert!(rate("hdd:hitachi-7k200") < 2_000.0);
        let nvme = rate("ssd:nvme-dc-2t");
        assert!((300_000.0..1_500_000.0).contains(&nvme), "{nvme}");
    }
}
