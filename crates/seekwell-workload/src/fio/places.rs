//! Selection of the next call of a job: file, direction, position and length.

use super::job::{Amount, Blocks, Dir, Distribution, Job, Service};
use super::zipf::Zipf;
use super::zones::Zones;
use crate::machine::{Fd, Machine};
use crate::scripts::common::*;
use rand::Rng;
use rand::seq::SliceRandom;

/// Maximum number of blocks for which visited positions are recorded. In larger files, positions
/// can repeat.
const MAP_BLOCKS: u64 = 1 << 24;

/// A call to make.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub fd: Fd,
    pub dir: Dir,
    pub off: u64,
    pub len: u32,
}

/// A file, and the positions in it that were already used.
struct Visited {
    fd: Fd,
    /// Next sequential position of each direction.
    at: [u64; 3],
    /// The current run of calls from a random position: number of calls left, start and end of the
    /// last call.
    run: (u32, u64, u64),
    /// Bytes of calls started in this file, for the sequential service.
    bytes: u64,
    /// Positions that were not used yet, in random order; for random jobs that record visited
    /// positions.
    map: Vec<u32>,
    /// Visited positions, for jobs with several lengths. A call ends before a visited position.
    seen: Vec<bool>,
    /// A job that goes backwards has begun at the end of the file.
    back: bool,
}

/// The files of a job and the current positions in them.
pub(super) struct Places {
    files: Vec<Visited>,
    /// Size of the region of each file, in bytes; a whole number of blocks.
    each: u64,
    /// Number of bytes after which the job is done.
    goal: u64,
    /// All positions are multiples of this number of bytes.
    unit: u32,
    /// The current file, and the number of calls already made in its turn.
    turn: (usize, u64),
    zipf: Option<Zipf>,
    zones: Option<Zones>,
    /// Number of bytes of one of several passes (loops).
    pass: Option<u64>,
    /// Number of these passes that are complete.
    passes: u64,
    /// Files whose next pass has begun since the last call of [`Places::passed`].
    again: Vec<Fd>,
    /// A write that must follow the discard of the same block.
    pending: Option<Call>,
    /// Numbers of calls and bytes started. If blocks are discarded and then written, only the
    /// discards count.
    pub ios: u64,
    pub bytes: u64,
    /// Numbers of calls and bytes started, by direction.
    pub of: [(u64, u64); 3],
}

impl Places {
    /// Makes the initial state for files whose regions have `each` bytes. The amounts of the job
    /// must be resolved.
    pub(super) fn new(job: &Job, fds: &[Fd], each: u64) -> Self {
        let unit = job.unit();
        let each = each - each % u64::from(unit);
        let all = each.saturating_mul(fds.len() as u64);
        let size = job.size.map_or(all, |s| s.bytes().min(all));
        let pass = job.io_size.map_or(size, Amount::bytes);
        let fresh = |fd: &Fd| Visited {
            fd: *fd,
            at: [0; 3],
            run: (0, 0, 0),
            bytes: 0,
            map: Vec::new(),
            seen: Vec::new(),
            back: false,
        };
        Places {
            files: fds.iter().map(fresh).collect(),
            each,
            goal: pass.saturating_mul(job.loops),
            unit,
            turn: (0, 0),
            zipf: None,
            zones: job.zones.map(|z| Zones::new(z, fds.len(), each)),
            pass: (job.loops > 1).then_some(pass).filter(|n| *n > 0),
            passes: 0,
            again: Vec::new(),
            pending: None,
            ios: 0,
            bytes: 0,
            of: [(0, 0); 3],
        }
    }

    /// Returns true if there are more calls to make. Does not check the time limit.
    pub(super) fn more(&self, job: &Job) -> bool {
        if self.pending.is_some() {
            return true;
        }
        if job.number_ios.is_some_and(|n| self.ios >= n) {
            return false;
        }
        job.time_based || self.bytes < self.goal
    }

    /// Returns the files whose next pass has begun since the last call.
    pub(super) fn passed(&mut self) -> Vec<Fd> {
        std::mem::take(&mut self.again)
    }

    /// Records that the next pass over a file has begun.
    fn begin_pass(&mut self, n: usize) {
        let fd = self.files[n].fd;
        if !self.again.contains(&fd) {
            self.again.push(fd);
        }
    }

    /// Selects and returns the file of a sync. A sync counts as a call in the turn of a file.
    pub(super) fn file<M: Machine>(&mut self, m: &mut M, job: &Job) -> Fd {
        let n = self.pick(m, job);
        self.files[n].fd
    }

    fn pick<M: Machine>(&mut self, m: &mut M, job: &Job) -> usize {
        let n = self.files.len();
        if n == 1 {
            return 0;
        }
        let (mut at, done) = self.turn;
        match job.service {
            Service::Random(_) if done == 0 => at = uniform(m, 0, n as u64 - 1) as usize,
            Service::Sequential if self.files[at].bytes >= self.each => {
                at = (at + 1) % n;
                self.files[at].bytes = 0;
            }
            _ => {}
        }
        self.turn = match job.service {
            Service::RoundRobin(turn) if done + 1 >= turn => ((at + 1) % n, 0),
            Service::Random(turn) if done + 1 >= turn => (at, 0),
            _ => (at, done + 1),
        };
        at
    }

    pub(super) fn next<M: Machine>(&mut self, m: &mut M, job: &Job) -> Call {
        if let Some(call) = self.pending.take() {
            self.of[Dir::Write as usize].0 += 1;
            self.of[Dir::Write as usize].1 += u64::from(call.len);
            return call;
        }
        let passes = self.pass.map_or(0, |pass| self.bytes / pass);
        if passes != self.passes {
            self.passes = passes;
            (0..self.files.len()).for_each(|n| self.begin_pass(n));
        }
        let p = job.pattern;
        let dir = match (p.reads, p.writes) {
            _ if p.trims => Dir::Trim,
            (true, true) if m.rng().random_range(0..100) >= job.mix_read => Dir::Write,
            (true, _) => Dir::Read,
            _ => Dir::Write,
        };
        let n = self.pick(m, job);
        let blocks = &job.blocks[dir as usize];
        let percent = job.random_percent[dir as usize];
        let random = p.random && (percent >= 100 || m.rng().random_range(0..100) < percent);
        let (place, len) = if let Some(zones) = &mut self.zones {
            let file = &mut self.files[n];
            let want = draw(m, blocks);
            zones.place(m, n, dir, random, want, &mut file.at[dir as usize])
        } else if random {
            let (place, len) = self.run(m, job, n, blocks);
            self.files[n].at[dir as usize] = place + u64::from(len);
            (place, len)
        } else {
            self.sequential(m, job, n, dir, blocks)
        };
        self.ios += 1;
        self.bytes += u64::from(len);
        self.files[n].bytes += u64::from(len);
        self.of[dir as usize].0 += 1;
        self.of[dir as usize].1 += u64::from(len);
        let call = Call {
            fd: self.files[n].fd,
            dir,
            off: job.offset.bytes() + place,
            len,
        };
        if p.trims_first {
            let write = Dir::Write;
            self.pending = Some(Call { dir: write, ..call });
        }
        call
    }

    /// Returns a random length that fits into `room`, or the smallest length.
    fn length<M: Machine>(&self, m: &mut M, blocks: &Blocks, room: u64) -> u32 {
        if blocks.fixed() {
            return blocks.min();
        }
        // If most lengths fit, a few draws find one. Otherwise use the smallest length.
        for _ in 0..64 {
            let len = draw(m, blocks);
            if u64::from(len) <= room {
                return len;
            }
        }
        blocks.min()
    }

    fn sequential<M: Machine>(
        &mut self,
        m: &mut M,
        job: &Job,
        n: usize,
        dir: Dir,
        blocks: &Blocks,
    ) -> (u64, u32) {
        let mut at = self.files[n].at[dir as usize];
        let hole = job.pattern.hole;
        if at > 0 && hole >= 0 {
            at = at.saturating_add(hole.unsigned_abs());
        } else if at > 0 {
            // Before the start of the file, the job goes on at its end.
            let back = hole.unsigned_abs();
            let wrapped = at < back;
            at = if wrapped {
                self.each.saturating_sub(back)
            } else {
                at - back
            };
            if wrapped && self.files[n].back {
                self.begin_pass(n);
            }
            self.files[n].back = true;
        }
        if at.saturating_add(u64::from(blocks.min())) > self.each {
            at = 0;
            self.begin_pass(n);
        }
        let len = self.length(m, blocks, self.each - at);
        self.files[n].at[dir as usize] = at + u64::from(len);
        (at, len)
    }

    /// Returns the next position and length of the current run of calls. Starts a new run at a
    /// random position if the current run is finished or has reached the end of the file.
    fn run<M: Machine>(&mut self, m: &mut M, job: &Job, n: usize, blocks: &Blocks) -> (u64, u32) {
        let (left, began, ended) = self.files[n].run;
        let at = if job.pattern.identical { began } else { ended };
        if left > 0 && at + u64::from(blocks.min()) <= self.each {
            let len = self.length(m, blocks, self.each - at);
            self.files[n].run = (left - 1, at, at + u64::from(len));
            self.visit(n, at, len);
            return (at, len);
        }
        let (at, len) = self.random(m, job, n, blocks);
        let left = job.pattern.run.saturating_sub(1);
        self.files[n].run = (left, at, at + u64::from(len));
        (at, len)
    }

    /// Marks the blocks of a call as visited, if visited positions are recorded.
    fn visit(&mut self, n: usize, at: u64, len: u32) {
        let unit = u64::from(self.unit);
        let seen = &mut self.files[n].seen;
        let to = (at + u64::from(len)).div_ceil(unit).min(seen.len() as u64);
        if let Some(those) = seen.get_mut((at / unit) as usize..to as usize) {
            those.fill(true);
        }
    }

    fn random<M: Machine>(
        &mut self,
        m: &mut M,
        job: &Job,
        n: usize,
        blocks: &Blocks,
    ) -> (u64, u32) {
        let unit = u64::from(self.unit);
        let count = self.each / unit;
        let mapped =
            job.distribution == Distribution::Uniform && !job.norandommap && count <= MAP_BLOCKS;
        let len = draw(m, blocks);
        if !mapped {
            // A block that would exceed the end of the file is moved towards the start.
            let place = self.rank(m, job, count) * unit;
            let fits = place.min(self.each - u64::from(len).min(self.each));
            return (fits - fits % unit, len);
        }
        if self.files[n].map.is_empty() && self.files[n].bytes > 0 {
            self.begin_pass(n);
        }
        let f = &mut self.files[n];
        let fixed = blocks.fixed() && len == self.unit && job.pattern.run < 2;
        let place = loop {
            let Some(place) = f.map.pop() else {
                f.map = (0..count as u32).collect();
                f.map.shuffle(m.rng());
                f.seen.clear();
                if !fixed {
                    f.seen.resize(count as usize, false);
                }
                continue;
            };
            if !f.seen.get(place as usize).is_some_and(|s| *s) {
                break u64::from(place);
            }
        };
        if fixed && f.seen.is_empty() {
            return (place * unit, len);
        }
        f.seen.resize(count as usize, false);
        let want = u64::from(len).div_ceil(unit) as usize;
        let free = f.seen[place as usize..].iter().take(want);
        let free = free.take_while(|s| !**s).count();
        f.seen[place as usize..place as usize + free].fill(true);
        let len = u64::from(len).min(free as u64 * unit) as u32;
        (place * unit, len)
    }

    fn rank<M: Machine>(&mut self, m: &mut M, job: &Job, blocks: u64) -> u64 {
        let rank = match &job.distribution {
            Distribution::Uniform => return uniform(m, 0, blocks - 1),
            Distribution::Zoned(zones) => return zone(m, zones, blocks),
            Distribution::Zipf(theta) => {
                let zipf = self.zipf.get_or_insert_with(|| Zipf::new(blocks, *theta));
                zipf.rank(m)
            }
            Distribution::Pareto(h) => pareto(m.rng().random(), *h, blocks),
            Distribution::Normal(percent) => loop {
                let x = (0.5 + normal(m.rng()) * percent / 100.0) * blocks as f64;
                if (0.0..blocks as f64).contains(&x) {
                    break x as u64;
                }
            },
        };
        spread(rank.min(blocks - 1), blocks)
    }
}

pub(super) fn draw<M: Machine>(m: &mut M, blocks: &Blocks) -> u32 {
    match blocks {
        Blocks::Range(lo, hi) if lo == hi => *lo,
        Blocks::Range(lo, hi) => {
            // fio draws multiples of the smallest length if it is a power of two.
            let unit = if lo.is_power_of_two() { *lo } else { 1 };
            lo + unit * m.rng().random_range(0..=(hi - lo) / unit)
        }
        Blocks::Split(all) => {
            let mut left = m.rng().random_range(0..100);
            for (bytes, share) in all {
                if left < *share {
                    return *bytes;
                }
                left -= share;
            }
            blocks.min()
        }
    }
}

/// Returns a random position in one of the zones.
fn zone<M: Machine>(m: &mut M, zones: &[(f64, f64)], blocks: u64) -> u64 {
    let mut left = m.rng().random::<f64>() * 100.0;
    let mut from = 0.0;
    for (calls, places) in zones {
        if left < *calls && *places > 0.0 {
            let x = from + m.rng().random::<f64>() * places;
            return ((x / 100.0 * blocks as f64) as u64).min(blocks - 1);
        }
        left -= calls;
        from += places;
    }
    blocks - 1
}

/// Returns a rank in 0..n with a Pareto distribution, from a uniform number `u`. A fraction `h` of
/// the ranks has weight 1 - h, recursively.
fn pareto(u: f64, h: f64, n: u64) -> u64 {
    let power = libm::log(h) / libm::log(1.0 - h);
    (libm::pow(u, power) * (n - 1) as f64) as u64
}

/// Returns the position of a rank. The mapping is a permutation of 0..n that spreads neighbouring
/// ranks over the file.
fn spread(rank: u64, n: u64) -> u64 {
    let mut step = (n as f64 * 0.618_033_988_749_895) as u64 | 1;
    while gcd(step, n) != 1 {
        step += 2;
    }
    (u128::from(rank) * u128::from(step) % u128::from(n)) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_ranks_are_a_permutation() {
        for n in [1, 2, 3, 5, 10, 2560, 4096, 99_991, 100_000] {
            let mut seen = vec![false; n as usize];
            for rank in 0..n {
                seen[spread(rank, n) as usize] = true;
            }
            assert!(seen.iter().all(|s| *s), "{n}");
        }
    }

    /// The command `fio-genzipf -t pareto -i 0.2` of fio 3.33, with 262144 hits on the same number
    /// of blocks. The most frequently hit 5, 10, 20 and 50 % of the hit blocks get 57.1, 63.6, 71.4
    /// and 84.6 % of the hits.
    #[test]
    fn pareto_hits_equal_those_of_fio() {
        let n = 262_144u64;
        let mut hits = vec![0u32; n as usize];
        for i in 0..n {
            // Evenly spaced numbers replace the random numbers.
            hits[pareto((i as f64 + 0.5) / n as f64, 0.2, n) as usize] += 1;
        }
        // In the tail there are more blocks than draws. Random draws miss some of these blocks and
        // hit others twice, but evenly spaced draws do not. So only the most frequent blocks are
        // compared.
        hits.sort_unstable_by(|a, b| b.cmp(a));
        let hot = |blocks: usize| f64::from(hits[..blocks].iter().sum::<u32>()) / n as f64;
        // 5 % of the 81271 blocks that were hit.
        assert!((hot(4064) - 0.571).abs() < 0.02, "{}", hot(4064));
        assert!((hot(8127) - 0.636).abs() < 0.02, "{}", hot(8127));
    }
}
