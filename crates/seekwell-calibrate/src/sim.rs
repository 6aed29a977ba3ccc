//! A probe for device models on virtual time. With it, tests check the estimators against known
//! parameters.

use crate::probe::{Facts, Io, Probe, Stop, Timed, What};
use rand::RngCore;
use seekwell_core::rng::{self, Pcg64Mcg};
use seekwell_core::{Accept, Command, Device, Done, Instant, Op, Sector, Sectors};

/// A probe for any device model.
#[derive(Debug)]
pub struct SimProbe<D> {
    device: D,
    facts: Facts,
    now: Instant,
    rng: Pcg64Mcg,
    noise_ns: f64,
    done: Vec<Done>,
}

impl<D: Device> SimProbe<D> {
    /// Returns a probe for `device`. Only the size and the block size are taken from the device's
    /// facts. The estimators must find the depth, the caches and the medium. Each completion
    /// reaches the host after an exponential delay with mean `noise_ns`, and the next command waits
    /// for that delay.
    pub fn new(device: D, seed: u64, noise_ns: f64) -> Self {
        let f = device.facts();
        let facts = Facts {
            name: f.name.clone(),
            capacity: f.capacity.0,
            block: 1,
            identity: vec!["a device model on virtual time".to_owned()],
            ..Facts::default()
        };
        SimProbe {
            device,
            facts,
            now: Instant::START,
            rng: rng::stream(seed, "probe"),
            noise_ns,
            done: vec![],
        }
    }
    /// Permits writes.
    pub fn allow_write(mut self) -> Self {
        self.facts.may_write = true;
        self
    }
    /// Changes the facts that the host reports about the device.
    pub fn with_facts(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        change(&mut self.facts);
        self
    }
    fn noise(&mut self) -> u64 {
        let u = (self.rng.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0;
        (-libm::log(1.0 - u) * self.noise_ns) as u64
    }
}

fn command(io: &Io, id: u32) -> Command {
    Command {
        id,
        op: match io.what {
            What::Read => Op::Read,
            What::Write => Op::Write,
            What::Flush => Op::Flush,
        },
        sector: Sector(io.lba),
        sectors: Sectors(io.sectors),
        fua: false,
    }
}

impl<D: Device> Probe for SimProbe<D> {
    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn now(&self) -> u64 {
        self.now.0
    }
    fn sleep(&mut self, ns: u64) -> Result<(), Stop> {
        self.now = Instant(self.now.0.saturating_add(ns));
        self.device.advance(self.now, &mut self.done);
        self.done.clear();
        Ok(())
    }
    fn run(&mut self, ios: &[Io], depth: usize, out: &mut Vec<Timed>) -> Result<(), Stop> {
        out.clear();
        out.resize(ios.len(), Timed::default());
        // `sent` counts the I/Os that the program has sent. Those that the device has not accepted
        // wait in the host.
        let (mut sent, mut taken, mut back) = (0, 0, 0);
        while back < ios.len() {
            while sent < ios.len() && sent - back < depth {
                out[sent].sent = self.now.0;
                sent += 1;
            }
            while taken < sent {
                let c = command(&ios[taken], taken as u32);
                if self.device.accept(self.now, c) == Accept::Busy {
                    break;
                }
                taken += 1;
            }
            let Some(t) = self.device.next_event() else {
                return Err(Stop::Device("the model has I/O but no next event".into()));
            };
            self.now = self.now.max(t);
            self.device.advance(self.now, &mut self.done);
            let done = std::mem::take(&mut self.done);
            for d in &done {
                if d.error {
                    return Err(Stop::Device("the model reports a medium error".into()));
                }
                let at = d.at.0 + self.noise();
                out[d.id as usize].done = at;
                back += 1;
                // With one outstanding I/O the device waits for the program. With more, the device
                // works on the others during the delay.
                if depth == 1 {
                    self.now = self.now.max(Instant(at));
                }
            }
            self.done = done;
            self.done.clear();
        }
        let last = out.iter().map(|t| t.done).max().unwrap_or(0);
        self.now = self.now.max(Instant(last));
        Ok(())
    }
}
