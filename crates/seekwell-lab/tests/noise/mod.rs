//! Simulates runs with a known truth, and with the noise models of the specification.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// The noise model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Normally distributed, with a coefficient of variation of 3 %.
    Normal,
    /// Lognormal, with a coefficient of variation of 20 %.
    Lognormal,
    /// Heavy tails, and one run in twenty loses up to 30 %.
    Heavy,
    /// Three runs in ten are 8 % slower.
    TwoModes,
    /// Autocorrelated drift of 3 %, which falls by 0.2 % per run.
    Drift,
}

pub const ALL: [Noise; 5] = [
    Noise::Normal,
    Noise::Lognormal,
    Noise::Heavy,
    Noise::TwoModes,
    Noise::Drift,
];

/// Makes runs in order, because drift depends on time.
pub struct Machine {
    noise: Noise,
    pub rng: Pcg64Mcg,
    level: f64,
    runs: f64,
}

impl Machine {
    pub fn new(noise: Noise, seed: u64) -> Self {
        let mut m = Machine {
            noise,
            rng: Pcg64Mcg::new(u128::from(seed) * 0x9e37_79b9_7f4a_7c15 + 77),
            level: 0.0,
            runs: 0.0,
        };
        m.level = 0.03 * m.normal();
        m
    }
    fn uniform(&mut self) -> f64 {
        self.rng.random_range(f64::EPSILON..1.0)
    }
    pub fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform(), self.uniform());
        libm::sqrt(-2.0 * libm::log(a)) * libm::cos(std::f64::consts::TAU * b)
    }
    /// Makes a run whose true value is 100 exp(effect).
    pub fn run(&mut self, effect: f64) -> f64 {
        let log = match self.noise {
            Noise::Normal => libm::log((1.0 + 0.03 * self.normal()).max(0.01)),
            Noise::Lognormal => 0.198 * self.normal(),
            Noise::Heavy => {
                let chi2: f64 = (0..3).map(|_| self.normal()).map(|z| z * z).sum();
                let t = self.normal() / libm::sqrt(chi2 / 3.0);
                let slow = if self.uniform() < 0.05 {
                    0.3 * self.uniform()
                } else {
                    0.0
                };
                (0.02 * t).clamp(-0.5, 0.5) + libm::log(1.0 - slow)
            }
            Noise::TwoModes => {
                let slow = if self.uniform() < 0.3 { -0.083 } else { 0.0 };
                slow + 0.005 * self.normal()
            }
            Noise::Drift => {
                self.level = 0.95 * self.level + 0.03 * libm::sqrt(1.0 - 0.9025) * self.normal();
                self.runs += 1.0;
                self.level - 0.002 * self.runs + 0.002 * self.normal()
            }
        };
        100.0 * libm::exp(effect + log)
    }
}
