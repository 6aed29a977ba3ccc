//! Defaults of the commands: the only place that lists default devices, schedulers and workloads.
//!
//! The default workloads are short: all of them under all schedulers need a few seconds of CPU
//! time.

use seekwell_sched::Layer;

/// The default choices for one era of kernels and devices.
#[derive(Debug)]
pub struct Usual {
    /// Devices of commands that compare several devices.
    pub devices: &'static [&'static str],
    /// Device of commands that use only one device.
    pub device: &'static str,
    /// Schedulers, separated by commas as on the command line.
    pub schedulers: &'static str,
    /// Workloads, each written as on the command line.
    pub workloads: &'static [&'static str],
    /// Number of seeds for these workloads. `None` means that the run time of the first seed
    /// determines the number.
    pub seeds: Option<u32>,
}

/// Defaults for current kernels and drives: an NVMe drive, a SATA SSD and a hard disk. The
/// schedulers are those of every kernel since 5.0.
///
/// One second of bulk writes to the NVMe drive takes the most CPU time to simulate. `pause` is long
/// enough that writeback begins before the application starts.
pub const TODAY: Usual = Usual {
    devices: &["ssd:nvme-gen4-tlc-2t", "ssd:sata-tlc-1t", "hdd:st2000dm006"],
    // The scheduler makes the largest difference on this device.
    device: "hdd:st2000dm006",
    schedulers: "none,mq-deadline,kyber,bfq",
    workloads: &[
        "interactive:size=64m,bulk=512m,seconds=2s",
        "app-start:starts=1,libraries=5,small=15,readers=1,writers=1,bulk=512m,pause=200ms",
        "fs-mark:files=30",
    ],
    // Three seeds are too few to show a difference after the correction for some 50 comparisons.
    seeds: Some(6),
};

/// Defaults for the single-queue kernels and the drives of 2012, and for the bfq of today.
pub const IN_2012: Usual = Usual {
    devices: &["hdd:hitachi-7k200", "ssd:sata3-256-2011"],
    device: "hdd:hitachi-7k200",
    schedulers: "cfq,deadline,noop,bfq",
    workloads: &[
        "streams:size=256m,seconds=2s",
        "interactive:size=256m,bulk=512m,seconds=10s",
        "fs-mark:files=60",
    ],
    seeds: None,
};

impl Usual {
    /// Returns the defaults of the era in which schedulers of this layer were used.
    pub fn for_layer(layer: Layer) -> &'static Usual {
        match layer {
            Layer::Legacy => &IN_2012,
            Layer::Mq => &TODAY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell::words;

    /// The command line must accept every word of the lists.
    #[test]
    fn default_lists_are_valid_command_line_words() {
        for usual in [&TODAY, &IN_2012] {
            assert!(usual.devices.contains(&usual.device), "{usual:?}");
            for device in usual.devices {
                words::device(device).unwrap_or_else(|e| panic!("{device}: {e}"));
            }
            let typed = words::schedulers(usual.schedulers).expect("schedulers");
            assert_eq!(typed.len(), 4);
            for workload in usual.workloads {
                words::workload(workload, &[]).unwrap_or_else(|e| panic!("{workload}: {e}"));
            }
        }
    }

    #[test]
    fn current_defaults_include_app_start_and_recent_drives() {
        let name = |w: &&str| w.split(':').next() == Some("app-start");
        assert!(TODAY.workloads.iter().any(name));
        assert_eq!(TODAY.schedulers, "none,mq-deadline,kyber,bfq");
        for device in TODAY.devices {
            let year = seekwell_device::describe(device).expect("a preset").year;
            assert!(year.is_some_and(|y| y >= 2016), "{device}: {year:?}");
        }
    }
}
