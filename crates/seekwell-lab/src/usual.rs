//! What commands run when nothing is asked for: the only place that lists default devices,
//! schedulers and workloads.
//!
//! Workloads are sized so that all of them under all schedulers take a few seconds of CPU time.

use seekwell_sched::Layer;

/// The defaults of an era.
#[derive(Debug)]
pub struct Usual {
    /// Devices of commands that compare.
    pub devices: &'static [&'static str],
    /// Device of commands that take one.
    pub device: &'static str,
    /// Schedulers, as a list is typed.
    pub schedulers: &'static str,
    /// Workloads, as they are typed.
    pub workloads: &'static [&'static str],
    /// Seeds that these workloads run with; `None`: chosen from what the first seed did.
    pub seeds: Option<u32>,
}

/// The kernels and drives of today: an NVMe drive, a SATA SSD and a hard disk under the schedulers
/// that every kernel since 5.0 has.
///
/// On an NVMe drive a second of bulk writes is the most expensive part; `pause` is long enough for
/// writeback to begin before the application starts.
pub const TODAY: Usual = Usual {
    devices: &["ssd:nvme-gen4-tlc-2t", "ssd:sata-tlc-1t", "hdd:st2000dm006"],
    // The device on which the choice of a scheduler matters most.
    device: "hdd:st2000dm006",
    schedulers: "none,mq-deadline,kyber,bfq",
    workloads: &[
        "interactive:size=64m,bulk=512m,seconds=2s",
        "app-start:starts=1,libraries=5,small=15,readers=1,writers=1,bulk=512m,pause=200ms",
        "fs-mark:files=30",
    ],
    // Three decide nothing after a correction for some 50 comparisons.
    seeds: Some(6),
};

/// The single-queue kernels and the drives of 2012, with the bfq of today.
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
    /// The defaults of the era in which schedulers of this layer were in use.
    pub fn of(layer: Layer) -> &'static Usual {
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

    /// Every word of the lists is one that a command line takes.
    #[test]
    fn the_defaults_can_be_typed() {
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
    fn the_default_of_today_has_an_application_start_on_drives_of_today() {
        let name = |w: &&str| w.split(':').next() == Some("app-start");
        assert!(TODAY.workloads.iter().any(name));
        assert_eq!(TODAY.schedulers, "none,mq-deadline,kyber,bfq");
        for device in TODAY.devices {
            let year = seekwell_device::describe(device).expect("a preset").year;
            assert!(year.is_some_and(|y| y >= 2016), "{device}: {year:?}");
        }
    }
}
