//! The parts of a simulated world: the setup below, and the modelled machine above.

use super::programs::Neighbour;
use crate::notation::read_ahead::pages as read_ahead_pages;
use crate::notation::{cgroup, machine};
use crate::setup::{Setup, SetupError};
use seekwell_core::Nanos;
use seekwell_core::spec::{MachineSpec, SpecErrors};
use seekwell_stack::Config;

/// The setup of the block layer and the device, and the machine above them.
#[derive(Clone, Debug)]
pub struct WorldSetup {
    /// Device, scheduler and queue.
    pub setup: Setup,
    /// Configuration of the machine.
    pub config: Config,
    /// Whether the seed determines the start times of the program and of its tasks.
    pub phase_drawn: bool,
    /// Virtual time after which the run stops.
    pub limit: Option<Nanos>,
    /// Background programs.
    pub neighbours: Vec<Neighbour>,
    /// Cgroups of the machine, parents first.
    pub cgroups: Vec<cgroup::Cgroup>,
}

impl WorldSetup {
    /// Creates a machine of the scheduler's era, with the default memory and file system.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        let mut config = Config::new(setup.era()?);
        config.seed = setup.seed;
        // The modelled kernel's samples are not used here.
        let usual = config.constants.readahead_pages;
        config.constants.readahead_pages = read_ahead_pages(&setup.device, config.era, usual);
        Ok(WorldSetup {
            setup,
            config,
            phase_drawn: false,
            limit: None,
            neighbours: Vec::new(),
            cgroups: Vec::new(),
        })
    }
    /// Changes the machine by a list of options such as `memory=2G,cores=2,without=readahead`.
    ///
    /// # Errors
    /// Returns all unknown options and invalid values.
    pub fn apply(&mut self, list: &str) -> Result<(), SpecErrors> {
        let typed = machine::typed(list)?;
        self.machine(&typed.spec)?;
        self.limit = typed.limit_s.map(Nanos::from_secs).or(self.limit);
        Ok(())
    }
    /// Applies a specification of the machine.
    ///
    /// # Errors
    /// Returns all invalid values.
    pub fn machine(&mut self, spec: &MachineSpec) -> Result<(), SpecErrors> {
        if !spec.cgroups.is_empty() {
            self.cgroups = cgroup::all(&spec.cgroups)?;
        }
        machine::change(&mut self.config, spec)?;
        self.phase_drawn |= machine::phase_drawn(spec);
        // Another kernel has another default read-ahead.
        if spec.kernel.is_some() && spec.read_ahead_kb.is_none() {
            let c = &mut self.config;
            let usual = c.constants.readahead_pages;
            c.constants.readahead_pages = read_ahead_pages(&self.setup.device, c.era, usual);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_stack::Fs;

    fn world() -> WorldSetup {
        WorldSetup::new(Setup::default()).expect("the default")
    }

    #[test]
    fn options_change_the_machine() {
        let mut w = world();
        w.apply("memory=512M,cores=2,fs=ext3,barriers=no,aged=64,limit=30")
            .expect("good options");
        w.apply("without=readahead+stable-pages, cache=64M,read_ahead_kb=512")
            .expect("good options");
        let c = &w.config;
        assert_eq!((c.memory_bytes, c.cores, c.fs), (512 << 20, 2, Fs::Ext3));
        assert_eq!((c.barriers, c.aged_run_blocks), (Some(false), 64));
        assert!(c.ablations.no_readahead && c.ablations.no_stable_pages);
        assert!(!c.ablations.no_plugging);
        assert_eq!(c.cache_pages(), (64 << 20) / 4096);
        assert_eq!(c.constants.readahead_pages, 128);
        assert_eq!(w.limit, Some(Nanos::from_secs(30)));
        w.apply("kernel=2.6.24,cores=1").expect("good options");
        assert_eq!(w.config.era, seekwell_core::Era::K2_6_24);
        assert_eq!((w.config.cores, w.config.memory_bytes), (1, 512 << 20));
    }

    #[test]
    fn invalid_options_are_rejected_with_a_remedy() {
        for (text, words) in [
            ("ram=1G", "there is no option \"ram\""),
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
            ("without=", "there are plugging, readahead"),
            ("without=noidle+", "there are plugging, readahead"),
            ("limit=1000000001", "a number of seconds, 1..=1000000000"),
            ("limit=18446744073709551616", "a number of seconds"),
            ("limit=1s", "a number of seconds"),
            ("cores=0", "a number of 1..=1024"),
            ("fs=xfs", "--substrate kernel"),
            ("without=luck", "there are plugging, readahead"),
            ("limit=0", "a number of seconds"),
            ("without=stable-page", "did you mean `stable-pages`?"),
            ("read_ahead_kb=3", "a multiple of 4"),
            ("kernel=2.4", "kernel 2.4.0 is older than 2.6.18"),
            ("kernel=new", "\"new\" is not a kernel release"),
        ] {
            let e = world().apply(text).expect_err(text).to_string();
            assert!(e.contains(words), "{text}: {e}");
        }
        let all = world().apply("core=2,memory=1").expect_err("two faults");
        assert_eq!(all.0.len(), 2, "{all}");
        assert!(all.to_string().contains("did you mean `cores`?"), "{all}");
    }
}
