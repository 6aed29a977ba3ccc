//! The size of a device: the number of devices that it contains, and the memory that its tables
//! need.
//!
//! Arrays can contain arrays, so their member counts multiply. A specification of one line, for
//! example `64 of 64 of 64`, can need more memory than any computer has. The size of a drive is
//! computed from its parameters; the drive itself is not built.

use crate::catalogue::read_preset;
use crate::error::DeviceError;
use crate::preset::Preset;
use crate::{raid, smr, spec, ssd};

/// Maximum number of devices in one specification.
pub const DEVICES_MAX: u64 = 512;
/// Approximate memory of any modelled device with its queue, in bytes, without its tables.
const EACH: u64 = 64 << 10;

/// The size of a device; see the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Number of devices that contain no other device.
    pub devices: u64,
    /// Memory of the tables in bytes: exact for page maps, an upper bound for all other tables.
    pub bytes: u64,
}

/// Returns the size of the device of a specification.
///
/// # Errors
/// Returns an error if the specification is invalid, or if it contains more than [`DEVICES_MAX`]
/// devices.
pub fn footprint(text: &str) -> Result<Footprint, DeviceError> {
    let all = parse_footprint(text)?;
    if all.devices > DEVICES_MAX {
        return Err(DeviceError::Spec {
            spec: text.to_owned(),
            what: format!("it consists of {} devices", all.devices),
            remedy: format!("use fewer members; the limit is {DEVICES_MAX} devices"),
        });
    }
    Ok(all)
}

fn parse_footprint(text: &str) -> Result<Footprint, DeviceError> {
    let preset = read_preset(text)?;
    let inner = match preset.kind {
        "raid" | "controller" => raid::member_specs(&preset).map_err(|e| preset.locate(e, text))?,
        "virtual" => vec![spec::bare(preset.word("over")).to_owned()],
        _ => {
            return Ok(Footprint {
                devices: 1,
                bytes: EACH.saturating_add(own(&preset)),
            });
        }
    };
    let mut all = Footprint::default();
    let mut known: Vec<(&String, Footprint)> = Vec::new();
    for m in &inner {
        let one = match known.iter().find(|k| k.0 == m) {
            Some(k) => k.1,
            None => {
                let f = parse_footprint(m)?;
                known.push((m, f));
                f
            }
        };
        all.devices = all.devices.saturating_add(one.devices);
        all.bytes = all.bytes.saturating_add(one.bytes);
    }
    Ok(all)
}

fn own(preset: &Preset) -> u64 {
    match preset.kind {
        "ssd" | "ufs" => ssd::footprint(preset),
        "smr" => smr::footprint(preset),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_counts_of_nested_arrays_multiply() {
        let n = |text: &str| footprint(text).map(|f| f.devices);
        assert_eq!(n("hdd:hitachi-7k200").ok(), Some(1));
        assert_eq!(n("raid0:members=4").ok(), Some(4));
        let two = "raid0:members=8,of=(raid5:members=8)";
        assert_eq!(n(two).ok(), Some(64));
        let mixed = "raid1:of=(controller:members=3)+hdd:hitachi-7k200";
        assert_eq!(n(mixed).ok(), Some(4));
        assert_eq!(n("virtual:over=(raid0:members=6)").ok(), Some(6));
        let cube = "raid0:members=64,of=(raid0:members=64,of=(raid0:members=64))";
        let e = footprint(cube).expect_err("too many").to_string();
        assert!(e.contains("consists of 262144 devices"), "{e}");
        assert!(e.contains("the limit is 512 devices"), "{e}");
        let deep = (0..9).fold("hdd:hitachi-7k200".to_owned(), |d, _| {
            format!("raid0:members=1,of=({d})")
        });
        let e = footprint(&deep).expect_err("too deep").to_string();
        assert!(e.contains("nested more than 8 levels deep"), "{e}");
    }

    #[test]
    fn page_map_memory_is_reported_and_scales() {
        let f = |text: &str| footprint(text).expect("a drive").bytes;
        let whole = f("ssd:nvme-dc-2t,variant=detailed,state=steady,scale=1");
        // The map has 4 bytes per page of user data and 4 bytes per page of flash.
        assert!((3 << 30..5 << 30).contains(&whole), "{whole}");
        let eighth = f("ssd:nvme-dc-2t,variant=detailed,state=steady,scale=8");
        assert!(whole / eighth >= 7 && whole / eighth <= 8, "{eighth}");
        assert!(f("ssd:nvme-dc-2t,variant=detailed") < 256 << 20);
        assert!(f("ssd:nvme-dc-2t") < 64 << 20);
        assert_eq!(
            f("raid0:members=4,of=(ssd:nvme-dc-2t,variant=detailed)"),
            4 * f("ssd:nvme-dc-2t,variant=detailed")
        );
    }
}
