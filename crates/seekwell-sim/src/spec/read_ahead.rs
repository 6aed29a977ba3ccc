//! queue/read_ahead_kb as a kernel begins with it.
//!
//! 128 KiB, or twice the best request of what is below, where that is more: a window of 128 KiB
//! spans two strips of 64 KiB, so that one reader keeps two disks of an array at work, however many
//! it has. md says so of its striped arrays in every kernel modelled; since 5.10 the block layer does
//! it for all devices that report a best request ("block: lift setting the readahead size into the
//! block layer"), so a controller's drives have the larger window under blk-mq only. What has no
//! strips of its own hands on what is below. Left out: what tools write later (LVM's `--readahead
//! auto`, udev).

use seekwell_core::{Era, Sector};
use seekwell_device::raid::{ArrayParams, Combined, Layout};
use seekwell_device::{ControllerParams, read_preset};

const PAGE_BYTES: u64 = 4096;
/// The most that a machine may be given, in pages: 64 MiB.
const MOST_PAGES: u64 = 16_384;
/// Size of a member, where it does not matter.
const ANY: Sector = Sector(1 << 40);

/// Pages of it for a device, where one without strips has `usual`.
pub fn pages(device: &str, era: Era, usual: u64) -> u64 {
    let bytes = match optimal(device) {
        Some((bytes, md)) if md || era.is_mq() => bytes,
        _ => 0,
    };
    (2 * bytes / PAGE_BYTES).min(MOST_PAGES).max(usual)
}

/// queue/optimal_io_size of a device, 0 if it reports none.
pub fn optimal_bytes(device: &str) -> u64 {
    optimal(device).map_or(0, |o| o.0)
}

/// The same, and whether md says so.
fn optimal(device: &str) -> Option<(u64, bool)> {
    let preset = read_preset(device).ok()?;
    match preset.kind {
        "raid" => {
            let p = ArrayParams::from_preset(&preset).ok()?;
            if let Combined::Raid(level) = p.combined {
                let layout = Layout::new(level, p.members.len(), p.chunk, ANY).ok()?;
                if layout.optimal_bytes() > 0 {
                    return Some((layout.optimal_bytes(), true));
                }
            }
            let below = p.members.iter().filter_map(|m| optimal(m));
            below.map(|o| (o.0, false)).max()
        }
        "controller" => {
            let p = ControllerParams::from_preset(&preset).ok()?;
            let layout = Layout::new(p.level, p.members.len(), p.strip, ANY).ok()?;
            Some((layout.optimal_bytes(), false)).filter(|o| o.0 > 0)
        }
        _ => None,
    }
}
