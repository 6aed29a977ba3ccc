//! The I/O schedulers that Linux distributions set, by class of device, with their sources.
//!
//! The data are in `defaults.toml` in this directory. Each row names the sources that were read. A
//! test checks that every name in the file exists.

use seekwell_core::suggest;
use seekwell_device::{Preset, describe};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A class of devices for which distributions choose a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A rotating disk with one hardware queue.
    Hdd,
    /// A flash disk with one hardware queue that appears as a SCSI disk.
    Ssd,
    /// An NVMe drive with several hardware queues.
    Nvme,
    /// An eMMC or SD card.
    Mmc,
    /// A virtual disk with one hardware queue.
    Vd,
    /// A virtual disk with several hardware queues.
    VdMq,
    /// A loop device.
    Loop,
}

/// All classes, in the order of the table.
pub const CLASSES: [Class; 7] = [
    Class::Hdd,
    Class::Ssd,
    Class::Nvme,
    Class::Mmc,
    Class::Vd,
    Class::VdMq,
    Class::Loop,
];

impl Class {
    /// Returns the name in the data file and in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Hdd => "hdd",
            Class::Ssd => "ssd",
            Class::Nvme => "nvme",
            Class::Mmc => "mmc",
            Class::Vd => "vd",
            Class::VdMq => "vd-mq",
            Class::Loop => "loop",
        }
    }
    /// Returns a description of the devices.
    pub const fn about(self) -> &'static str {
        match self {
            Class::Hdd => "rotating disk with one hardware queue (SATA, USB)",
            Class::Ssd => "flash disk with one hardware queue (SATA SSD, UFS of a phone)",
            Class::Nvme => "NVMe drive with several hardware queues",
            Class::Mmc => "eMMC or SD card",
            Class::Vd => "virtual disk (virtio, cloud) with one hardware queue",
            Class::VdMq => "virtual disk (virtio, cloud) with several hardware queues",
            Class::Loop => "loop device over a file",
        }
    }
    /// Returns the modelled device that stands for the class. `None` for loop devices, which have
    /// no model.
    pub const fn device(self) -> Option<&'static str> {
        match self {
            Class::Hdd => Some("hdd:st2000dm006"),
            Class::Ssd => Some("ssd:sata-tlc-1t"),
            Class::Nvme => Some("ssd:nvme-gen4-tlc-2t"),
            Class::Mmc => Some("sd:samsung-evoplus32"),
            Class::Vd => Some("virtual:vm-virtio-hdd"),
            Class::VdMq => Some("virtual:vm-virtio-nvme"),
            Class::Loop => None,
        }
    }
    /// Returns the class of a modelled device. Arrays and hardware RAID controllers have none: a
    /// distribution sees an md array without a scheduler, and a controller as any kind of disk. A
    /// virtual disk of depth 1 is an emulated IDE disk, and has none either.
    pub fn of(preset: &Preset) -> Option<Class> {
        let depth_one = preset.num_opt("depth").is_some_and(|n| n <= 1.0);
        match preset.kind {
            // The rules of distributions match the file `rotational`, which is 1 for USB sticks.
            "hdd" | "smr" | "usb" => Some(Class::Hdd),
            "ssd" if preset.has_several_queues() => Some(Class::Nvme),
            "ssd" => Some(Class::Ssd),
            "ufs" if !preset.has_several_queues() => Some(Class::Ssd),
            "emmc" | "sd" => Some(Class::Mmc),
            "virtual" if depth_one => None,
            "virtual" | "cloud" if preset.has_several_queues() => Some(Class::VdMq),
            "virtual" | "cloud" => Some(Class::Vd),
            _ => None,
        }
    }
}

/// Returns the class of a device that is named as on the command line.
///
/// # Errors
/// A message if no device has this name, or if the device belongs to no class.
pub fn class_of(device: &str) -> Result<Class, String> {
    let preset = describe(device).map_err(|e| e.to_string())?;
    Class::of(&preset).ok_or_else(|| {
        format!(
            "{device}: a device of the kind {} belongs to no class of the table; the classes are {}",
            preset.kind,
            CLASSES.map(Class::name).join(", ")
        )
    })
}

/// Who sets the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum By {
    /// A file of the distribution.
    #[serde(rename = "file")]
    File,
    /// The kernel, because no file of the distribution sets one.
    #[serde(rename = "kernel")]
    Kernel,
    /// No source was read that answers the question.
    #[serde(rename = "not found")]
    NotFound,
}

/// The scheduler of some classes of devices under one distribution.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Classes of devices.
    pub classes: Vec<Class>,
    /// Name of the scheduler; `None` if it was not found.
    pub scheduler: Option<String>,
    /// Tunables that the same file sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tunables: BTreeMap<String, String>,
    /// Who sets it.
    pub by: By,
    /// Identifiers of the sources.
    pub sources: Vec<String>,
}

impl Row {
    /// Returns the scheduler with its tunables, as on the command line; `None` if it was not found.
    pub fn setup(&self) -> Option<String> {
        let mut text = self.scheduler.clone()?;
        for (name, value) in &self.tunables {
            text += &format!(":{name}={value}");
        }
        Some(text)
    }
}

/// Another setting of I/O that the files of a distribution change.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Name in sysfs or sysctl.
    pub name: String,
    /// Value in words.
    pub value: String,
    /// What sets it, and for which devices.
    #[serde(rename = "where")]
    pub place: String,
    /// Identifier of the source.
    pub source: String,
}

/// A distribution.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Short name, for the command line.
    pub name: String,
    /// Name with the release that was read.
    pub title: String,
    /// Remarks, in sentences.
    pub about: String,
    /// Schedulers by class.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
    /// Other settings.
    #[serde(default, rename = "setting")]
    pub settings: Vec<Setting>,
}

impl Distribution {
    /// Returns the row of a class; `None` if the distribution has no such devices.
    pub fn row(&self, class: Class) -> Option<&Row> {
        self.rows.iter().find(|r| r.classes.contains(&class))
    }
    /// Returns the identifiers of all sources, each one time, in the order of the rows.
    pub fn sources(&self) -> Vec<&str> {
        let rows = self.rows.iter().flat_map(|r| &r.sources);
        let all = rows.chain(self.settings.iter().map(|s| &s.source));
        let mut out: Vec<&str> = Vec::new();
        for id in all {
            if !out.contains(&id.as_str()) {
                out.push(id);
            }
        }
        out
    }
}

/// A text that was read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Identifier.
    pub id: String,
    /// Address, or package and path.
    pub place: String,
    /// Version or commit.
    pub version: String,
    /// Day on which it was read: YYYY-MM-DD.
    pub read: String,
    /// What it shows.
    pub shows: String,
}

/// The contents of the data file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Sources.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
    /// Distributions, in the order of the table.
    #[serde(rename = "distribution")]
    pub distributions: Vec<Distribution>,
}

impl Defaults {
    /// Returns the source with this identifier.
    pub fn source(&self, id: &str) -> Option<&Source> {
        self.sources.iter().find(|s| s.id == id)
    }
    /// Returns the distribution with this name.
    ///
    /// # Errors
    /// A message with similar names, or with all names.
    pub fn distribution(&self, name: &str) -> Result<&Distribution, String> {
        let all = &self.distributions;
        if let Some(found) = all.iter().find(|d| d.name == name) {
            return Ok(found);
        }
        let names: Vec<&str> = all.iter().map(|d| d.name.as_str()).collect();
        let remedy = suggest::did_you_mean(name, names.iter().copied(), &ALIASES);
        let remedy = remedy.unwrap_or_else(|| format!("there are {}", names.join(", ")));
        Err(format!("no distribution is called \"{name}\"; {remedy}"))
    }
}

/// Other words for distributions, for suggestions.
const ALIASES: [(&str, &str); 8] = [
    ("centos", "rhel"),
    ("centos-stream", "rhel"),
    ("redhat", "rhel"),
    ("suse", "opensuse"),
    ("tumbleweed", "opensuse"),
    ("aosp", "android"),
    ("kernel", "upstream"),
    ("linux", "upstream"),
];

/// Returns the data.
///
/// # Panics
/// Never: a test reads the file.
pub fn defaults() -> &'static Defaults {
    static ALL: OnceLock<Defaults> = OnceLock::new();
    ALL.get_or_init(|| toml::from_str(include_str!("defaults.toml")).expect("defaults.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell::words;
    use std::collections::BTreeSet;

    #[test]
    fn every_scheduler_tunable_and_source_exists() {
        let all = defaults();
        let ids: BTreeSet<&str> = all.sources.iter().map(|s| s.id.as_str()).collect();
        assert_eq!(ids.len(), all.sources.len(), "two sources have the same id");
        let mut used = BTreeSet::new();
        for d in &all.distributions {
            assert!(!d.title.is_empty() && d.about.ends_with('.'), "{}", d.name);
            for r in &d.rows {
                assert!(!r.sources.is_empty(), "{}: {:?}", d.name, r.classes);
                assert_eq!(r.scheduler.is_none(), r.by == By::NotFound, "{}", d.name);
                assert!(r.tunables.is_empty() || r.by == By::File, "{}", d.name);
                if let Some(setup) = r.setup() {
                    let typed = words::schedulers(&setup);
                    let typed = typed.unwrap_or_else(|e| panic!("{}: {setup}: {e}", d.name));
                    assert!(words::named(&typed[0].spec.name).is_ok_and(|f| f.era.is_mq()));
                }
            }
            for id in d.sources() {
                assert!(ids.contains(id), "{}: no source is called {id}", d.name);
                used.insert(id);
            }
        }
        assert_eq!(ids, used, "a source without a row");
    }

    #[test]
    fn each_class_of_a_distribution_has_one_row() {
        let mut names = BTreeSet::new();
        for d in &defaults().distributions {
            assert!(names.insert(&d.name), "{} is there twice", d.name);
            let mut seen = BTreeSet::new();
            for class in d.rows.iter().flat_map(|r| &r.classes) {
                assert!(seen.insert(*class), "{}: {} twice", d.name, class.name());
            }
        }
        // The kernel's own choice is the basis of the other rows, so it must be complete.
        let upstream = defaults().distribution("upstream").expect("upstream");
        for class in CLASSES {
            assert_eq!(upstream.row(class).expect("a row").by, By::Kernel);
        }
    }

    /// Where no file sets a scheduler, all distributions must get the same one from the kernel.
    #[test]
    fn rows_of_the_kernel_agree_with_upstream() {
        let upstream = defaults().distribution("upstream").expect("upstream");
        for d in &defaults().distributions {
            for class in CLASSES {
                let row = d.row(class).filter(|r| r.by == By::Kernel);
                let own = row.map(|r| &r.scheduler);
                let kernels = upstream.row(class).map(|r| &r.scheduler);
                assert!(own.is_none() || own == kernels, "{}: {class:?}", d.name);
            }
        }
    }

    #[test]
    fn every_source_has_a_place_a_version_and_a_date() {
        for s in &defaults().sources {
            let address = s.place.strip_prefix("https://");
            let package = s.place.split_once(": ");
            let (package, path) = (package.map(|p| p.0), package.map(|p| p.1));
            let is_package = package.is_some_and(|p| !p.contains(['/', ' ']))
                && path.is_some_and(|p| !p.starts_with('/') && !p.contains(' '));
            let is_address = address.is_some_and(|a| a.contains('/') && !a.contains(' '));
            assert!(is_address || is_package, "{}: {}", s.id, s.place);
            assert!(!s.version.is_empty() && !s.shows.is_empty(), "{}", s.id);
            let date: Vec<&str> = s.read.split('-').collect();
            let lengths: Vec<usize> = date.iter().map(|p| p.len()).collect();
            assert_eq!(lengths, [4, 2, 2], "{}: {}", s.id, s.read);
            let number = |i: usize, low: u32, high: u32| {
                let n: u32 = date[i].parse().expect("a number");
                assert!((low..=high).contains(&n), "{}: {}", s.id, s.read);
            };
            number(0, 2024, 2100);
            number(1, 1, 12);
            number(2, 1, 31);
        }
    }

    #[test]
    fn every_modelled_class_has_a_device_of_that_class() {
        for class in CLASSES {
            if let Some(device) = class.device() {
                assert_eq!(class_of(device), Ok(class), "{device}");
            }
        }
        assert_eq!(class_of("ssd:nvme-dc-2t"), Ok(Class::Nvme));
        assert_eq!(class_of("hdd:hitachi-7k200,write_cache=no"), Ok(Class::Hdd));
        assert_eq!(class_of("cloud:aws-gp3-500"), Ok(Class::VdMq));
        assert_eq!(class_of("cloud:gp2,hw_queues=1"), Ok(Class::Vd));
        let none = class_of("raid:raid0-4x").expect_err("no class");
        assert!(none.contains("kind raid belongs to no class"), "{none}");
        assert!(class_of("virtual:vm-2008-ide").is_err());
    }

    #[test]
    fn unknown_distribution_gets_a_suggestion() {
        let unknown = |name: &str| defaults().distribution(name).expect_err("unknown");
        assert!(unknown("fedoar").ends_with("did you mean `fedora`?"));
        assert!(unknown("centos").contains("`rhel`"));
        assert!(unknown("slackware").contains("there are upstream, debian"));
    }
}
