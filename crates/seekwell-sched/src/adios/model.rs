//! Learning: one latency model (base + slope x size) for each type of operation.
//!
//! Samples are sorted into 64 buckets by the ratio of measured to predicted latency. An update
//! drops the slowest hundredth and adds the other samples to sums. The sums are reduced at certain
//! limits, so that old samples lose weight. All arithmetic uses integers and truncates.

#[cfg(test)]
mod thresholds;

use seekwell_core::{Instant, Nanos};

const BUCKETS: usize = 64;
/// Requests of up to this many bytes are samples of the base; longer requests are samples of the
/// slope.
pub(super) const SMALL: u64 = 4096;
/// At this total weight of samples, an update does not wait for its time.
const ENOUGH: u64 = 1024;
/// Time between updates of a model that has few samples.
const PATIENCE: Nanos = Nanos::from_ms(1500);

/// The limits at which old samples lose weight, and the differences between releases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Number of small samples, in thousands, at which the sums of the base are reduced.
    pub shrink_at_kreqs: u64,
    /// Number of bytes, in GiB, at which the sums of the slope are reduced.
    pub shrink_at_gbytes: u64,
    /// A reduction removes the fraction 1/2^`shrink_resist` of the sums.
    pub shrink_resist: u32,
    /// True if bucket numbers wrap around at 8 bits.
    pub narrow_buckets: bool,
    /// True if the base is subtracted once per latency of a large request. False if it is
    /// subtracted only once from the sum of these latencies.
    pub base_per_sample: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    weight: u64,
    latency_ns: u64,
    bytes: u64,
}

impl Bucket {
    fn add(&mut self, o: Bucket) {
        self.weight += o.weight;
        self.latency_ns = self.latency_ns.saturating_add(o.latency_ns);
        self.bytes = self.bytes.saturating_add(o.bytes);
    }
    /// Returns the part of the bucket that corresponds to `n` units of its `weight`.
    fn part(&self, n: u64) -> Bucket {
        if self.weight == 0 {
            return Bucket::default();
        }
        let cut = |x: u64| (u128::from(x) * u128::from(n) / u128::from(self.weight)) as u64;
        Bucket {
            weight: n,
            latency_ns: cut(self.latency_ns),
            bytes: cut(self.bytes),
        }
    }
}

/// Returns the bucket of a measured latency, by its ratio to the prediction.
fn bucket(measured: u64, predicted: u64, narrow: bool) -> usize {
    let (m, p) = (measured, predicted);
    let b = if m < 2 * p {
        20 * m / p
    } else if m < 5 * p {
        10 * m / p + 20
    } else {
        3 * m / p + 40
    };
    let b = if narrow { b & 0xff } else { b };
    (b as usize).min(BUCKETS - 1)
}

/// Empties `buckets` and returns their sum: of all samples, or of all but the slowest hundredth.
fn harvest(buckets: &mut [Bucket; BUCKETS], total: u64, all: bool) -> Bucket {
    let threshold = if all { total } else { total * 99 / 100 };
    let mut sum = Bucket::default();
    for b in buckets.iter() {
        let left = threshold - sum.weight;
        if b.weight >= left {
            sum.add(b.part(left));
            break;
        }
        sum.add(*b);
    }
    *buckets = [Bucket::default(); BUCKETS];
    sum
}

/// The latency model of one type of operation.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// Predicted latency of a request of up to 4 KiB, ns.
    pub base: u64,
    /// Additional latency for each KiB above 4 KiB, ns.
    pub slope: u64,
    small_delay: u64,
    small_count: u64,
    large_delay: u64,
    large_bytes: u64,
    small: [Bucket; BUCKETS],
    large: [Bucket; BUCKETS],
    last_update: Instant,
}

impl Model {
    /// Returns a model without samples.
    pub fn new(now: Instant) -> Self {
        Model {
            base: 0,
            slope: 0,
            small_delay: 0,
            small_count: 0,
            large_delay: 0,
            large_bytes: 0,
            small: [Bucket::default(); BUCKETS],
            large: [Bucket::default(); BUCKETS],
            last_update: now,
        }
    }
    /// Sets base (ns) and slope (ns/KiB) from outside. Together they count as one sample.
    pub fn sideload(&mut self, base: u64, slope: u64, now: Instant) {
        *self = Model {
            base,
            slope,
            small_delay: base,
            small_count: (base > 0).into(),
            large_delay: slope,
            large_bytes: if slope > 0 { 1024 } else { 0 },
            ..Model::new(now)
        };
    }

    /// `latency_model_predict`: returns the predicted latency of a request of this many bytes, ns.
    pub fn predict(&self, bytes: u64) -> u64 {
        let kib = bytes.saturating_sub(SMALL).div_ceil(1024);
        self.base.saturating_add(self.slope.saturating_mul(kib))
    }

    /// `latency_model_input`: records that a request of `bytes`, with predicted latency `pl`, took
    /// `latency_ns`.
    pub fn feed(
        &mut self,
        rules: &Rules,
        now: Instant,
        bytes: u64,
        latency_ns: u64,
        pl: u64,
        weight: u64,
    ) {
        let mut sample = Bucket {
            weight,
            latency_ns: weight * latency_ns,
            bytes: 0,
        };
        if bytes <= SMALL {
            let b = bucket(latency_ns, self.base.max(1), rules.narrow_buckets);
            self.small[b].add(sample);
            if self.base == 0 {
                self.update(rules, now);
            }
        } else if self.base > 0 && pl > 0 {
            sample.bytes = weight * bytes;
            let b = bucket(latency_ns, pl, rules.narrow_buckets);
            self.large[b].add(sample);
        }
    }

    /// `latency_model_update`: computes base and slope from the samples.
    pub fn update(&mut self, rules: &Rules, now: Instant) {
        let elapsed = self.base == 0 || now.since(self.last_update) >= PATIENCE;
        let mut done = false;

        let total: u64 = self.small.iter().map(|b| b.weight).sum();
        if total > 0 && (elapsed || total >= ENOUGH || self.base == 0) {
            let sum = harvest(&mut self.small, total, self.base == 0);
            if sum.weight > 0 {
                if self.small_count >= 1000 * rules.shrink_at_kreqs {
                    self.small_delay -= self.small_delay >> rules.shrink_resist;
                    self.small_count -= self.small_count >> rules.shrink_resist;
                }
                self.small_delay = self.small_delay.saturating_add(sum.latency_ns);
                self.small_count += sum.weight;
                self.base = self.small_delay / self.small_count;
                done = true;
            }
        }

        let total: u64 = self.large.iter().map(|b| b.weight).sum();
        if total > 0 && (elapsed || total >= ENOUGH || self.slope == 0) {
            let mut sum = harvest(&mut self.large, total, self.slope == 0);
            if sum.weight > 0 {
                if self.large_bytes >= rules.shrink_at_gbytes << 30 {
                    self.large_delay -= self.large_delay >> rules.shrink_resist;
                    self.large_bytes -= self.large_bytes >> rules.shrink_resist;
                }
                let n = if rules.base_per_sample { sum.weight } else { 1 };
                let intercept = self.base.saturating_mul(n);
                if sum.latency_ns > intercept {
                    sum.latency_ns -= intercept;
                }
                self.large_delay = self.large_delay.saturating_add(sum.latency_ns);
                self.large_bytes = self.large_bytes.saturating_add(sum.bytes);
                self.slope = self.large_delay / self.large_bytes.div_ceil(1024).max(1);
                done = true;
            }
        }
        if done || elapsed {
            self.last_update = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        shrink_at_kreqs: 5000,
        shrink_at_gbytes: 50,
        shrink_resist: 2,
        narrow_buckets: true,
        base_per_sample: false,
    };
    const US: u64 = 1000;
    fn at_ms(ms: u64) -> Instant {
        Instant::at_us(ms * 1000)
    }

    /// The first sample counts at once. A single later sample is the slowest hundredth and does not
    /// count. Of 200 samples, 198 count. (Worked example A9.)
    #[test]
    fn base_latency_is_learnt_from_samples() {
        let mut m = Model::new(at_ms(0));
        m.feed(&RULES, at_ms(0), 4096, 100 * US, 0, 1);
        assert_eq!(m.base, 100_000);
        m.feed(&RULES, at_ms(1), 4096, 80 * US, m.base, 1);
        assert_eq!(m.small[16].weight, 1, "0.8 of the prediction");
        m.update(&RULES, at_ms(1499));
        assert_eq!(m.small[16].weight, 1, "too early");
        m.update(&RULES, at_ms(1500));
        assert_eq!((m.base, m.small[16].weight), (100_000, 0), "cut off");
        for _ in 0..200 {
            m.feed(&RULES, at_ms(1600), 4096, 80 * US, m.base, 1);
        }
        m.update(&RULES, at_ms(3000));
        assert_eq!(m.base, 80_100);
    }

    /// Worked example A10.
    #[test]
    fn slope_is_learnt_from_large_samples() {
        let mut m = Model::new(at_ms(0));
        m.sideload(100_000, 0, at_ms(0));
        m.feed(
            &RULES,
            at_ms(1),
            132 << 10,
            356_000,
            m.predict(132 << 10),
            1,
        );
        assert_eq!(m.large[55].weight, 1);
        m.update(&RULES, at_ms(100));
        assert_eq!(m.slope, 1939);
        assert_eq!(m.predict(132 << 10), 348_192);
    }

    #[test]
    fn model_is_updated_early_after_1024_samples() {
        let mut m = Model::new(at_ms(0));
        m.sideload(100_000, 0, at_ms(0));
        for n in 1..=1024 {
            m.feed(&RULES, at_ms(1), 512, 200 * US, m.base, 1);
            m.update(&RULES, at_ms(1));
            assert_eq!(m.base != 100_000, n == 1024, "after {n}");
        }
        // floor(1024 x 99/100) = 1013 samples, and one sample for the base that was set from
        // outside.
        assert_eq!(m.base, (100_000 + 1013 * 200_000) / 1014);
    }

    #[test]
    fn bucket_edges_and_8_bit_overflow_match_the_kernel() {
        for (m, b) in [
            (0, 0),
            (1999, 39),
            (2000, 40),
            (4999, 63),
            (5000, 55),
            (7700, 63),
        ] {
            assert_eq!(bucket(m, 1000, true), b, "{m}");
            assert_eq!(bucket(m, 1000, false), b, "{m}");
        }
        assert_eq!(bucket(72_000, 1000, true), 0);
        assert_eq!(bucket(93_000, 1000, true), 63);
        assert_eq!(bucket(72_000, 1000, false), 63);
    }

    #[test]
    fn long_sums_shrink_by_a_quarter() {
        let rules = Rules {
            shrink_at_kreqs: 1,
            ..RULES
        };
        let mut m = Model::new(at_ms(0));
        m.sideload(100_000, 0, at_ms(0));
        (m.small_delay, m.small_count) = (100_000_000, 1000);
        for _ in 0..200 {
            m.feed(&rules, at_ms(1), 4096, 50_000, m.base, 1);
        }
        m.update(&rules, at_ms(2000));
        assert_eq!(
            (m.small_count, m.small_delay),
            (750 + 198, 75_000_000 + 198 * 50_000)
        );
    }

    /// 1.5.5 subtracts the base once per latency of a large request. Later versions subtract the
    /// base only once from the sum of these latencies.
    #[test]
    fn version_1_5_5_subtracts_the_base_per_large_sample() {
        for (base_per_sample, slope) in [(true, 2000), (false, 2025)] {
            let rules = Rules {
                base_per_sample,
                ..RULES
            };
            let mut m = Model::new(at_ms(0));
            m.sideload(100_000, 0, at_ms(0));
            for _ in 0..2 {
                m.feed(
                    &rules,
                    at_ms(1),
                    2_000_000 * 1024 / 1000,
                    4_100_000,
                    m.base,
                    1,
                );
            }
            m.update(&rules, at_ms(2));
            assert_eq!(m.slope, slope);
        }
    }
}
