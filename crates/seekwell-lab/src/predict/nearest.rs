//! The preset that is nearest to a real disk. It belongs to the same class of disks, but it is
//! another disk.

use seekwell_host::MachineFacts;

/// Capacity above which a rotating disk is taken for a nearline disk, in bytes.
const NEARLINE: u64 = 4 << 40;

/// A preset and the reason for its choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Specification of the preset.
    pub preset: &'static str,
    /// The class that the preset stands for.
    pub class: &'static str,
}

/// Returns the preset that is nearest to the disk. The kind of the disk decides, then whether it
/// rotates, then its size.
pub fn nearest(f: &MachineFacts) -> Nearest {
    let rotates = f.rotational.unwrap_or_default();
    let large = f.size_bytes.is_some_and(|n| n > NEARLINE);
    let model = f.model.as_deref().unwrap_or_default().to_lowercase();
    // The flag of a virtual disk says little about the disk below.
    let guest = f.disk.starts_with("virtio") || f.disk == "Xen";
    let (preset, class) = match f.disk.as_str() {
        _ if model.contains("amazon elastic block") => ("cloud:aws-gp3-500", "a cloud volume"),
        d if d.starts_with("NVMe") && data_centre(&model) => {
            ("ssd:nvme-dc-2t", "an NVMe drive of a data centre")
        }
        d if d.starts_with("NVMe") => ("ssd:nvme-gen4-tlc-2t", "a consumer's NVMe drive"),
        "eMMC/SD" => ("emmc:motog-sandisk8", "an eMMC"),
        _ if guest && rotates => ("virtual:vm-virtio-hdd", "a guest's disk over a hard disk"),
        _ if guest => (
            "virtual:vm-virtio-nvme",
            "a guest's disk over an NVMe drive",
        ),
        _ if rotates && large => ("hdd:exos-x18", "a nearline hard disk"),
        _ if rotates => ("hdd:st2000dm006", "a hard disk of 7200 rpm"),
        _ => ("ssd:sata-tlc-1t", "a SATA SSD"),
    };
    Nearest { preset, class }
}

/// Returns whether a model name is one of a data centre drive with power-loss protection.
fn data_centre(model: &str) -> bool {
    [
        "pm9a3", "pm17", "mz", "p45", "p55", "micron_7", "kcd", "dc ",
    ]
    .iter()
    .any(|m| model.contains(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(disk: &str, rotates: bool, size: u64, model: &str) -> &'static str {
        let facts = MachineFacts {
            disk: disk.to_owned(),
            rotational: Some(rotates),
            size_bytes: Some(size),
            model: Some(model.to_owned()),
            ..MachineFacts::default()
        };
        nearest(&facts).preset
    }

    #[test]
    fn kind_rotation_size_and_model_choose_the_preset() {
        let tib = 1 << 40;
        for (disk, rotates, size, model, of) in [
            (
                "NVMe",
                false,
                tib,
                "Samsung SSD 990 PRO",
                "ssd:nvme-gen4-tlc-2t",
            ),
            ("NVMe", false, tib, "SAMSUNG PM9A3", "ssd:nvme-dc-2t"),
            ("SATA", false, tib, "", "ssd:sata-tlc-1t"),
            ("SATA", true, tib, "", "hdd:st2000dm006"),
            ("SATA", true, 16 * tib, "", "hdd:exos-x18"),
            ("virtio", true, tib, "", "virtual:vm-virtio-hdd"),
            ("virtio", false, tib, "", "virtual:vm-virtio-nvme"),
            (
                "NVMe",
                false,
                tib,
                "Amazon Elastic Block Store",
                "cloud:aws-gp3-500",
            ),
        ] {
            assert_eq!(preset(disk, rotates, size, model), of, "{disk} {model}");
        }
    }

    #[test]
    fn every_preset_exists() {
        for disk in ["NVMe", "SATA", "virtio", "eMMC/SD", "loop"] {
            for (rotates, size, model) in [(true, 1, ""), (false, 1, "pm9a3"), (true, 1 << 43, "")]
            {
                let preset = preset(disk, rotates, size, model);
                seekwell_device::describe(preset).expect(preset);
            }
        }
    }
}
