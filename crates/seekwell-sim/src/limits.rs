//! The largest request of each kernel generation: the one place where it is decided, for every
//! command, demo and test.
//!
//! Two limits hold at once. `queue/max_sectors_kb` begins at min(hardware, 512 KiB); 3.19 took the
//! cap out, 4.3 brought it back as 1280 KiB, 6.17 raised it to 4 MiB. And a request has to fit into
//! the controller's scatter list: 168 entries for AHCI (AHCI_MAX_SG), 128 where the driver says
//! nothing (BLK_MAX_SEGMENTS); NVMe's list is as long as its largest command. An entry holds memory
//! that lies together, up to 64 KiB. Until ext4 kept its cache in large folios (6.16) that is one
//! page of 4 KiB, so the list is a number of sectors like the other limit; from then on each bio
//! says how its memory lies, and the queue counts entries. Left out: pages that lie together by
//! luck, as most do on a machine just started.

use seekwell_core::{DeviceFacts, Era, Sectors};

/// Sectors of a page of the cache.
const PAGE: u32 = 8;
/// AHCI_MAX_SG.
const AHCI_SEGMENTS: u32 = 168;
/// BLK_MAX_SEGMENTS.
const USUAL_SEGMENTS: u32 = 128;

/// Entries of the scatter list of whatever drives such a device; `None`: no limit of its own.
fn segments(f: &DeviceFacts) -> Option<u32> {
    if f.mmc.is_some() {
        Some(USUAL_SEGMENTS)
    } else if !f.flush_queueable {
        // Only SATA has a flush that cannot be queued.
        Some(AHCI_SEGMENTS)
    } else if f.hw_queues > 1 {
        None
    } else {
        Some(USUAL_SEGMENTS)
    }
}

/// Entries of the scatter list, where they are counted.
pub fn list_entries(era: Era, f: &DeviceFacts) -> u32 {
    match era {
        Era::Mq => segments(f).unwrap_or(u32::MAX),
        _ => u32::MAX,
    }
}

/// The largest request a kernel sends to a device when nobody writes `max_sectors_kb`. Never more
/// than the device takes, never less than a page.
pub fn largest_request(era: Era, f: &DeviceFacts) -> Sectors {
    let cap = match era {
        Era::K2_6_18 | Era::K2_6_24 | Era::K3_4 => 1024,
        Era::K4_0 => u32::MAX,
        Era::Mq6_1 => 2560,
        Era::Mq => 8192,
    };
    let list = match era {
        Era::Mq => None,
        _ => segments(f).map(|n| n * PAGE),
    };
    let limit = cap.min(list.unwrap_or(u32::MAX)).min(f.max_sectors.0);
    Sectors(limit.max(PAGE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::Sector;

    #[test]
    fn cap_and_scatter_list_by_generation() {
        let nvme = DeviceFacts {
            hw_queues: 4,
            ..DeviceFacts::plain("nvme", Sector(1 << 30), 1023)
        };
        let sata = DeviceFacts {
            flush_queueable: false,
            ..DeviceFacts::plain("sata", Sector(1 << 30), 31)
        };
        let small = DeviceFacts {
            max_sectors: Sectors(256),
            ..sata.clone()
        };
        let kib = |e, f: &DeviceFacts| largest_request(e, f).0 / 2;
        let eras = [Era::K2_6_24, Era::K3_4, Era::K4_0, Era::Mq6_1, Era::Mq];
        println!(
            "largest request, KiB: SATA {:?}",
            eras.map(|e| kib(e, &sata))
        );
        // 168 pages are 672 KiB.
        assert_eq!(eras.map(|e| kib(e, &sata)), [512, 512, 672, 672, 4096]);
        assert_eq!(eras.map(|e| kib(e, &nvme)), [512, 512, 32_767, 1280, 4096]);
        assert_eq!(eras.map(|e| kib(e, &small)), [128; 5]);
        // With single pages 6.18 sends SATA no more than 6.1 does.
        assert_eq!(list_entries(Era::Mq, &sata), 168);
        for (era, f) in [(Era::Mq6_1, &sata), (Era::Mq, &nvme)] {
            assert_eq!(list_entries(era, f), u32::MAX);
        }
    }
}
