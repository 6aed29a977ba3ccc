//! What a simulated world is made of: the setup below, the modelled machine above.

use crate::setup::{Setup, SetupError};
use seekwell_core::Nanos;
use seekwell_stack::{Ablations, Config, Fs};
use thiserror::Error;

/// Device, scheduler and queue as in [`Setup`], and the machine over them.
#[derive(Clone, Debug)]
pub struct WorldSetup {
    /// Below.
    pub setup: Setup,
    /// Above.
    pub config: Config,
    /// Stop after so much virtual time.
    pub limit: Option<Nanos>,
}

/// An option of the modelled machine that cannot be.
#[derive(Error, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// No such option.
    #[error("there is no option `{0}` of the modelled machine; there are {OPTIONS}")]
    Unknown(String),
    /// A value.
    #[error("{name}: `{value}` is not {wanted}")]
    Value {
        /// Of which option.
        name: String,
        /// As given.
        value: String,
        /// What it takes.
        wanted: String,
    },
}

const OPTIONS: &str = "memory, cache, cores, fs, barriers, aged, without, limit";

/// Largest memory and cache, bytes: 4 TiB, 2^30 pages.
const MEMORY_MAX: u64 = 4 << 40;
/// Longest mean run of an aged file system, blocks: no run is longer than a group.
const RUN_MAX: u32 = 32_768;
/// Longest limit, seconds: 31 years.
const LIMIT_MAX_S: u64 = 1_000_000_000;

/// Where a named mechanism is switched off.
type Switch = fn(&mut Ablations) -> &mut bool;

/// Mechanisms by the name they are taken out with.
const MECHANISMS: &[(&str, Switch)] = &[
    ("plugging", |a| &mut a.no_plugging),
    ("readahead", |a| &mut a.no_readahead),
    ("stable-pages", |a| &mut a.no_stable_pages),
    ("ordered-data", |a| &mut a.no_ordered_data),
    ("shadows", |a| &mut a.no_shadows),
    ("metadata-reads", |a| &mut a.metadata_cached),
    ("throttling", |a| &mut a.no_throttling),
    ("cpu", |a| &mut a.no_cpu_limit),
    ("noidle", |a| &mut a.no_noidle),
];

impl WorldSetup {
    /// A machine of the scheduler's time, with its usual memory and file system.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        let mut config = Config::new(setup.era()?);
        config.seed = setup.seed;
        // Nobody reads the samples of the modelled kernel here.
        config.series = false;
        Ok(WorldSetup {
            setup,
            config,
            limit: None,
        })
    }
    /// Changes the machine by a list of options, `memory=2G,cores=2,without=readahead`.
    pub fn apply(&mut self, list: &str) -> Result<(), OptionError> {
        for part in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            self.set(name, value)?;
        }
        Ok(())
    }
    /// Changes one option.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let bad = |wanted: &str| OptionError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
            wanted: wanted.to_owned(),
        };
        let c = &mut self.config;
        match name {
            "memory" => {
                let n = bytes(value).filter(|n| (16 << 20..=MEMORY_MAX).contains(n));
                c.memory_bytes = n.ok_or_else(|| bad("a size of 16M to 4096G (2G, 512M)"))?;
            }
            "cache" => {
                let n = bytes(value).filter(|n| (1 << 20..=MEMORY_MAX).contains(n));
                c.cache_bytes = Some(n.ok_or_else(|| bad("a size of 1M to 4096G (2G, 512M)"))?);
            }
            "cores" => {
                let n = value.parse().ok().filter(|n| (1..=1024).contains(n));
                c.cores = n.ok_or_else(|| bad("a number of 1..=1024"))?;
            }
            "fs" => {
                c.fs = match value {
                    "ext4" => Fs::Ext4,
                    "ext3" => Fs::Ext3,
                    _ => return Err(bad("ext3 or ext4")),
                }
            }
            "barriers" => {
                c.barriers = Some(match value {
                    "yes" | "on" | "1" => true,
                    "no" | "off" | "0" => false,
                    _ => return Err(bad("yes or no")),
                })
            }
            "aged" => {
                let n = value.parse().ok().filter(|n| *n <= RUN_MAX);
                c.aged_run_blocks = n.ok_or_else(|| {
                    bad("a mean run of 1..=32768 blocks, a group of the file system (0: fresh)")
                })?;
            }
            "without" => {
                for m in value.split('+') {
                    let known = || MECHANISMS.iter().map(|m| m.0).collect::<Vec<_>>();
                    let (_, field) = MECHANISMS.iter().find(|k| k.0 == m).ok_or_else(|| {
                        bad(&format!("one of {}, joined by +", known().join(", ")))
                    })?;
                    *field(&mut c.ablations) = true;
                }
            }
            "limit" => {
                let n = value.parse().ok().filter(|n| (1..=LIMIT_MAX_S).contains(n));
                let s = n.ok_or_else(|| bad("a number of seconds, 1..=1000000000"))?;
                self.limit = Some(Nanos::from_secs(s));
            }
            _ => return Err(OptionError::Unknown(name.to_owned())),
        }
        Ok(())
    }
}

/// `4096`, `16k`, `512M`, `2G`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> WorldSetup {
        WorldSetup::new(Setup::default()).expect("the default")
    }

    #[test]
    fn options_change_the_machine() {
        let mut w = world();
        w.apply("memory=512M,cores=2,fs=ext3,barriers=no,aged=64,limit=30")
            .expect("good options");
        w.apply("without=readahead+stable-pages, cache=64M")
            .expect("good options");
        let c = &w.config;
        assert_eq!((c.memory_bytes, c.cores, c.fs), (512 << 20, 2, Fs::Ext3));
        assert_eq!((c.barriers, c.aged_run_blocks), (Some(false), 64));
        assert!(c.ablations.no_readahead && c.ablations.no_stable_pages);
        assert!(!c.ablations.no_plugging);
        assert_eq!(c.cache_pages(), (64 << 20) / 4096);
        assert_eq!(w.limit, Some(Nanos::from_secs(30)));
    }

    #[test]
    fn bad_options_name_the_remedy() {
        for (text, words) in [
            ("ram=1G", "there is no option `ram`"),
            ("memory=lots", "a size of 16M to 4096G"),
            ("memory=1M", "a size of 16M to 4096G"),
            ("memory=4097G", "a size of 16M to 4096G"),
            ("memory=99999999999G", "a size of 16M to 4096G"),
            ("memory=-1", "a size of 16M to 4096G"),
            ("memory=", "a size of 16M to 4096G"),
            ("cache=0", "a size of 1M to 4096G"),
            ("cache=18446744073709551615", "a size of 1M to 4096G"),
            ("cores=1025", "a number of 1..=1024"),
            ("cores=65537", "a number of 1..=1024"),
            ("cores=4294967297", "a number of 1..=1024"),
            ("barriers=maybe", "yes or no"),
            ("aged=2147483648", "a mean run of 1..=32768 blocks"),
            ("aged=4294967296", "a mean run of 1..=32768 blocks"),
            ("aged=-1", "a mean run of 1..=32768 blocks"),
            ("without=", "one of plugging, readahead"),
            ("without=noidle+", "one of plugging, readahead"),
            ("limit=1000000001", "a number of seconds, 1..=1000000000"),
            ("limit=18446744073709551616", "a number of seconds"),
            ("limit=1s", "a number of seconds"),
            ("cores=0", "a number of 1..=1024"),
            ("fs=xfs", "ext3 or ext4"),
            ("without=luck", "one of plugging, readahead"),
            ("limit=0", "a number of seconds"),
        ] {
            let e = world().apply(text).expect_err(text).to_string();
            assert!(e.contains(words), "{text}: {e}");
        }
    }
}
