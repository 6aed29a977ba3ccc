//! Determines the kind of a block device. Its input is the device's name and the path of its
//! directory in the device tree.

use serde::Serialize;
use std::path::Path;

/// Kinds of block devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An NVMe namespace with a single path.
    Nvme,
    /// The device of an NVMe multipath namespace that programs use. Its paths do the I/O.
    NvmeHead,
    /// One path of an NVMe multipath namespace. It is hidden from programs.
    NvmePath,
    /// A disk on an ATA port.
    Sata,
    /// Any other SCSI disk, for example SAS, Fibre Channel, iSCSI, or a volume of a controller.
    Scsi,
    /// A disk behind a USB bridge.
    Usb,
    /// A virtual machine's disk, by virtio-blk.
    VirtioBlk,
    /// A virtual machine's disk, by SCSI over virtio.
    VirtioScsi,
    /// An eMMC or an SD card.
    Mmc,
    /// A virtual machine's disk under Xen.
    Xen,
    /// A CD or DVD drive.
    Optical,
    /// A loop device: a file that is used as a disk.
    Loop,
    /// A compressed disk in memory.
    Zram,
    /// A disk in memory.
    Ram,
    /// Persistent memory.
    Pmem,
    /// A network block device.
    Nbd,
    /// A Ceph volume.
    Rbd,
    /// A block device that is implemented in user space.
    Ublk,
    /// A test device that does nothing.
    NullBlk,
    /// A volume of LVM.
    Lvm,
    /// An encrypted volume of dm-crypt.
    Crypt,
    /// A multipath device of dm-multipath.
    Multipath,
    /// Any other device of the device mapper.
    Dm,
    /// An array of software RAID (md).
    Md,
    /// A disk with a cache in front of it (bcache).
    Bcache,
    /// A mirror over the network (DRBD).
    Drbd,
    /// A volume of a ZFS pool.
    Zvol,
    /// A device of an unknown kind.
    #[default]
    Other,
}

/// Name prefixes of device kinds. If one prefix is the start of another, the longer prefix comes
/// first.
const BY_NAME: &[(&str, Kind)] = &[
    ("loop", Kind::Loop),
    ("zram", Kind::Zram),
    ("ram", Kind::Ram),
    ("pmem", Kind::Pmem),
    ("nbd", Kind::Nbd),
    ("rbd", Kind::Rbd),
    ("ublkb", Kind::Ublk),
    ("nullb", Kind::NullBlk),
    ("mmcblk", Kind::Mmc),
    ("xvd", Kind::Xen),
    ("vd", Kind::VirtioBlk),
    ("sr", Kind::Optical),
    ("dm-", Kind::Dm),
    ("md", Kind::Md),
    ("bcache", Kind::Bcache),
    ("drbd", Kind::Drbd),
    ("zd", Kind::Zvol),
    ("sd", Kind::Scsi),
];

impl Kind {
    /// Returns the kind of a device from its name, the canonical path of its directory, and its
    /// UUID if it is a dm device.
    pub fn detect(name: &str, dir: &Path, dm_uuid: Option<&str>) -> Kind {
        if name.starts_with("nvme") {
            return Kind::of_nvme(name, dir);
        }
        let found = BY_NAME.iter().find(|b| name.starts_with(b.0));
        let kind = found.map_or(Kind::Other, |b| b.1);
        let within = |part: &str| {
            let parts = dir.components();
            parts.map(|p| p.as_os_str().to_string_lossy()).any(|p| {
                p.strip_prefix(part)
                    .is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
            })
        };
        match kind {
            Kind::Scsi if within("usb") => Kind::Usb,
            Kind::Scsi if within("ata") => Kind::Sata,
            Kind::Scsi if within("virtio") => Kind::VirtioScsi,
            Kind::Dm => match dm_uuid.and_then(|u| u.split('-').next()) {
                Some("LVM") => Kind::Lvm,
                Some("CRYPT") => Kind::Crypt,
                Some("mpath") => Kind::Multipath,
                _ => Kind::Dm,
            },
            kind => kind,
        }
    }

    /// Returns the kind of an NVMe device. A name such as `nvme0c1n1` is a path. The directory of a
    /// multipath head is below the subsystem and not below a controller.
    fn of_nvme(name: &str, dir: &Path) -> Kind {
        let rest = name.trim_start_matches("nvme");
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.starts_with('c') {
            Kind::NvmePath
        } else if dir.components().any(|p| p.as_os_str() == "nvme-subsystem") {
            Kind::NvmeHead
        } else {
            Kind::Nvme
        }
    }

    /// Returns one or two words for tables.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Nvme => "NVMe",
            Kind::NvmeHead => "NVMe multipath",
            Kind::NvmePath => "NVMe path",
            Kind::Sata => "SATA",
            Kind::Scsi => "SCSI",
            Kind::Usb => "USB",
            Kind::VirtioBlk => "virtio",
            Kind::VirtioScsi => "virtio SCSI",
            Kind::Mmc => "eMMC/SD",
            Kind::Xen => "Xen",
            Kind::Optical => "CD/DVD",
            Kind::Loop => "loop",
            Kind::Zram => "zram",
            Kind::Ram => "RAM disk",
            Kind::Pmem => "pmem",
            Kind::Nbd => "NBD",
            Kind::Rbd => "Ceph RBD",
            Kind::Ublk => "ublk",
            Kind::NullBlk => "null_blk",
            Kind::Lvm => "LVM",
            Kind::Crypt => "dm-crypt",
            Kind::Multipath => "multipath",
            Kind::Dm => "dm",
            Kind::Md => "md RAID",
            Kind::Bcache => "bcache",
            Kind::Drbd => "DRBD",
            Kind::Zvol => "ZFS volume",
            Kind::Other => "other",
        }
    }

    /// Returns whether the device is stacked on other block devices of this machine.
    pub fn stacked(self) -> bool {
        matches!(
            self,
            Kind::NvmeHead
                | Kind::Lvm
                | Kind::Crypt
                | Kind::Multipath
                | Kind::Dm
                | Kind::Md
                | Kind::Bcache
                | Kind::Drbd
        )
    }

    /// Returns whether the device is hardware, or appears as hardware to a virtual machine. For
    /// such devices the medium is reported.
    pub fn disk(self) -> bool {
        matches!(
            self,
            Kind::Nvme
                | Kind::NvmePath
                | Kind::Sata
                | Kind::Scsi
                | Kind::Usb
                | Kind::VirtioBlk
                | Kind::VirtioScsi
                | Kind::Mmc
                | Kind::Xen
        )
    }

    /// Returns whether the kernel creates devices of this kind in advance. Most of them are unused.
    pub fn idle_by_the_dozen(self) -> bool {
        matches!(self, Kind::Loop | Kind::Ram | Kind::Nbd | Kind::Zram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_kind_follows_from_name_and_path() {
        let rows = [
            (
                "sda",
                "/sys/devices/pci0/ata1/host0/block/sda",
                None,
                Kind::Sata,
            ),
            (
                "sdb",
                "/sys/devices/pci0/usb2/2-1/host6/block/sdb",
                None,
                Kind::Usb,
            ),
            (
                "sdc",
                "/sys/devices/pci0/virtio3/host2/block/sdc",
                None,
                Kind::VirtioScsi,
            ),
            (
                "sdd",
                "/sys/devices/platform/atari/host1/block/sdd",
                None,
                Kind::Scsi,
            ),
            (
                "vda",
                "/sys/devices/pci0/virtio1/block/vda",
                None,
                Kind::VirtioBlk,
            ),
            (
                "nvme0n1",
                "/sys/devices/pci0/nvme/nvme0/nvme0n1",
                None,
                Kind::Nvme,
            ),
            (
                "nvme0n1",
                "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1",
                None,
                Kind::NvmeHead,
            ),
            (
                "nvme0c1n1",
                "/sys/devices/pci0/nvme/nvme1/nvme0c1n1",
                None,
                Kind::NvmePath,
            ),
            ("dm-0", "/x", Some("LVM-abc"), Kind::Lvm),
            ("dm-1", "/x", Some("CRYPT-LUKS2-x"), Kind::Crypt),
            ("dm-2", "/x", Some("mpath-36001"), Kind::Multipath),
            ("dm-3", "/x", Some("part1-mpath-36001"), Kind::Dm),
            ("dm-4", "/x", None, Kind::Dm),
            ("md127", "/x", None, Kind::Md),
            ("mmcblk0", "/x", None, Kind::Mmc),
            ("sr0", "/x", None, Kind::Optical),
            ("sda\u{fffd}", "", None, Kind::Scsi),
            ("", "", None, Kind::Other),
        ];
        for (name, dir, uuid, kind) in rows {
            assert_eq!(
                Kind::detect(name, Path::new(dir), uuid),
                kind,
                "{name} {dir}"
            );
        }
    }
}
