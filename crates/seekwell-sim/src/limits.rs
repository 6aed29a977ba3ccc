//! The limits of a queue in each kernel. All commands, demos and tests take the limits from this
//! module.
//!
//! The size of a request has two limits. The first limit is `queue/max_sectors_kb`. By default, it
//! is the hardware's limit, but at most 512 KiB. Linux 3.19 removed this cap, 4.3 restored it as
//! 1280 KiB, and 6.17 raised it to 4 MiB. The second limit is the length of the controller's
//! scatter list: 168 entries for AHCI (AHCI_MAX_SG), or 128 if the driver sets no limit
//! (BLK_MAX_SEGMENTS). The list of NVMe is as long as its largest command.
//!
//! An entry of the list covers up to 64 KiB of contiguous memory. Before 6.16, the page cache of
//! ext4 has no large folios. An entry is then one page of 4 KiB, so this limit is a number of
//! sectors. From 6.16 on, each bio describes its memory, and the queue counts list entries.
//!
//! Two details are not modelled. First, pages can be contiguous by chance, as most are after a
//! reboot. Second, the single-queue layer of 4.3 to 4.20 also has the cap, but no scatter list of
//! its drivers is long enough to reach it.

use seekwell_core::{DeviceFacts, Era, Sectors};

/// Sectors per page of the page cache.
const PAGE: u32 = 8;
/// Largest scatter list of AHCI (AHCI_MAX_SG), entries.
const AHCI_SEGMENTS: u32 = 168;
/// Largest scatter list if the driver sets no limit (BLK_MAX_SEGMENTS), entries.
const USUAL_SEGMENTS: u32 = 128;

/// Returns the largest scatter list of the driver for this device, in entries. `None`: no limit.
pub fn segments(f: &DeviceFacts) -> Option<u32> {
    if f.mmc.is_some() {
        Some(USUAL_SEGMENTS)
    } else if !f.flush_queueable {
        // In the model, only SATA has a flush that cannot be queued, so this is a SATA device.
        Some(AHCI_SEGMENTS)
    } else if f.hw_queues > 1 {
        None
    } else {
        Some(USUAL_SEGMENTS)
    }
}

/// Returns the largest scatter list in entries, for kernels whose queue counts entries.
pub fn list_entries(era: Era, f: &DeviceFacts) -> u32 {
    match era >= Era::Mq6_16 {
        true => segments(f).unwrap_or(u32::MAX),
        false => u32::MAX,
    }
}

/// Returns the number of sectors that the default of `max_sectors_kb` allows. It is at most what
/// the device accepts, and at least a page.
fn cap(era: Era, f: &DeviceFacts) -> u32 {
    let cap: u32 = match era {
        Era::K2_6_18 | Era::K2_6_24 | Era::K3_4 => 1024,
        Era::K4_0 => u32::MAX,
        Era::Mq6_1 | Era::Mq | Era::Mq6_16 => 2560,
        Era::Mq6_18 => 8192,
    };
    cap.min(f.max_sectors.0).max(PAGE)
}

/// Returns the default of queue/max_sectors_kb, in KiB.
pub fn max_sectors_kb(era: Era, f: &DeviceFacts) -> u32 {
    cap(era, f) / 2
}

/// Returns the largest request that a kernel sends to a device with the default `max_sectors_kb`.
pub fn largest_request(era: Era, f: &DeviceFacts) -> Sectors {
    let list = segments(f).filter(|_| era < Era::Mq6_16).map(|n| n * PAGE);
    Sectors(cap(era, f).min(list.unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekwell_core::Sector;

    #[test]
    fn queue_limits_follow_the_kernel() {
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
        // The kernels are 2.6.18, 2.6.24, 3.4, 4.0, 6.1, 6.12, 6.16 and 6.18. 168 pages are 672
        // KiB.
        let all = |f: &DeviceFacts| Era::ALL.map(|e| kib(e, f));
        assert_eq!(all(&sata), [512, 512, 512, 672, 672, 672, 1280, 4096]);
        let most = 32_767;
        assert_eq!(all(&nvme), [512, 512, 512, most, 1280, 1280, 1280, 4096]);
        assert_eq!(all(&small), [128; 8]);
        // If memory consists of single pages, 6.18 sends no larger requests to SATA than 6.1.
        for era in [Era::Mq6_16, Era::Mq6_18] {
            assert_eq!(list_entries(era, &sata), 168);
        }
        for (era, f) in [(Era::Mq6_1, &sata), (Era::Mq, &sata), (Era::Mq6_18, &nvme)] {
            assert_eq!(list_entries(era, f), u32::MAX);
        }
    }
}
