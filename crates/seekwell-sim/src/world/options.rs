//! What a simulated world is made of: the setup below, the modelled machine above.

use crate::setup::{Setup, SetupError};
use seekwell_core::Nanos;
use seekwell_stack::Config;
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

const OPTIONS: &str = "cores, limit";

impl WorldSetup {
    /// A machine of the scheduler's time, with its usual memory and file system.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        let config = Config::new(setup.era()?);
        Ok(WorldSetup {
            setup,
            config,
            limit: None,
        })
    }
    /// Changes the machine by a list of options, `cores=2,limit=60`.
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
            "cores" => {
                let n = value.parse().ok().filter(|n| (1..=1024).contains(n));
                c.cores = n.ok_or_else(|| bad("a number of 1..=1024"))?;
            }
            "limit" => {
                let n: Option<u64> = value.parse().ok().filter(|n| *n > 0);
                let s = n.ok_or_else(|| bad("a number of seconds"))?;
                self.limit = Some(Nanos::from_secs(s.min(1_000_000_000)));
            }
            _ => return Err(OptionError::Unknown(name.to_owned())),
        }
        Ok(())
    }
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
        w.apply("cores=2, limit=30").expect("good options");
        assert_eq!(w.config.cores, 2);
        assert_eq!(w.limit, Some(Nanos::from_secs(30)));
    }

    #[test]
    fn bad_options_name_the_remedy() {
        for (text, words) in [
            ("ram=1G", "there is no option `ram`"),
            ("cores=0", "a number of 1..=1024"),
            ("limit=0", "a number of seconds"),
        ] {
            let e = world().apply(text).expect_err(text).to_string();
            assert!(e.contains(words), "{text}: {e}");
        }
    }
}
