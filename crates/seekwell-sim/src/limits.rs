//! The limits of a queue by kernel: the one place where they are decided, for every command, demo
//! and test.
//!
//! Two limits hold for a request. `queue/max_sectors_kb` begins at min(hardware, 512 KiB); 3.19 took
//! the cap out, 4.3 brought it back as 1280 KiB, 6.17 raised it to 4 MiB. And a request has to fit
//! into the controller's scatter list: 168 entries for AHCI (AHCI_MAX_SG), 128 where the driver says
//! nothing (BLK_MAX_SEGMENTS); NVMe's list is as long as its largest command. An entry holds memory
//! that lies together, up to 64 KiB. Until ext4 kept its cache in large folios (6.16) that is one
//! page of 4 KiB, so the list is a number of sectors like the other limit; from then on each bio
//! says how its memory lies, and the queue counts entries. Left out: pages that lie together by
//! luck, as most do on a machine just started; and the cap of 4.3 to 4.20 in the single-queue layer,
//! which no list of its drivers reaches.

use seekwell_core::{DeviceFacts, Era, Sectors};

/// Sectors of a page of the cache.
const PAGE: u32 = 8;
/// AHCI_MAX_SG.
const AHCI_SEGMENTS: u32 = 168;
/// BLK_MAX_SEGMENTS.
const USUAL_SEGMENTS: u32 = 128;

/// Entries of the scatter list of whatever drives such a device; `None`: no limit of its own.
pub fn segments(f: &DeviceFacts) -> Option<u32> {
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
    match era >= Era::Mq6_16 {
        true => segments(f).unwrap_or(u32::MAX),
        false => u32::MAX,
    }
}

/// Sectors that `max_sectors_kb` allows when nobody writes it. Never more than the device takes,
/// never less than a page.
fn cap(era: Era, f: &DeviceFacts) -> u32 {
    let cap: u32 = match era {
        Era::K2_6_18 | Era::K2_6_24 | Era::K3_4 => 1024,
        Era::K4_0 => u32::MAX,
        Era::Mq6_1 | Era::Mq | Era::Mq6_16 => 2560,
        Era::Mq6_18 => 8192,
    };
    cap.min(f.max_sectors.0).max(PAGE)
}

/// queue/max_sectors_kb when nobody writes it, KiB.
pub fn max_sectors_kb(era: Era, f: &DeviceFacts) -> u32 {
    cap(era, f) / 2
}

/// The largest request a kernel sends to a device when nobody writes `max_sectors_kb`.
pub fn largest_request(era: Era, f: &DeviceFacts) -> Sectors {
    let list = segments(f).filter(|_| era < Era::Mq6_16).map(|n| n * PAGE);
    Sectors(cap(era, f).min(list.unwrap_or(u32::MAX)))
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
        println!(
            "largest request, KiB: SATA {:?}",
            Era::ALL.map(|e| kib(e, &sata))
        );
        // 2.6.18, 2.6.24, 3.4, 4.0, 6.1, 6.12, 6.16, 6.18. 168 pages are 672 KiB.
        let all = |f: &DeviceFacts| Era::ALL.map(|e| kib(e, f));
        assert_eq!(all(&sata), [512, 512, 512, 672, 672, 672, 1280, 4096]);
        let most = 32_767;
        assert_eq!(all(&nvme), [512, 512, 512, most, 1280, 1280, 1280, 4096]);
        assert_eq!(all(&small), [128; 8]);
        // With single pages 6.18 sends SATA no more than 6.1 does.
        for era in [Era::Mq6_16, Era::Mq6_18] {
            assert_eq!(list_entries(era, &sata), 168);
        }
        for (era, f) in [(Era::Mq6_1, &sata), (Era::Mq, &sata), (Era::Mq6_18, &nvme)] {
            assert_eq!(list_entries(era, f), u32::MAX);
        }
    }
}
