//! The kernel's default for queue/read_ahead_kb.
//!
//! The default is 128 KiB, or twice the optimal request size of the device below if that is larger.
//! For example, 128 KiB span two strips of 64 KiB. One reader then keeps only two disks of an array
//! busy, even if the array has more disks. In every modelled kernel, md sets the larger default for
//! its striped arrays. Since 5.10, the block layer sets it for all devices that report an optimal
//! size ("block: lift setting the readahead size into the block layer"). The drives of a RAID
//! controller therefore have the larger default only under blk-mq. Devices without strips report
//! the value of the device below. Not modelled: changes by tools (LVM's `--readahead auto`, udev).

use seekwell_core::{Era, Sector};
use seekwell_device::raid::{ArrayParams, Combined, Layout};
use seekwell_device::{ControllerParams, read_preset};

const PAGE_BYTES: u64 = 4096;
/// Largest configurable window in pages: 64 MiB.
const MOST_PAGES: u64 = 16_384;
/// Size of a member, used where the size has no effect.
const ANY: Sector = Sector(1 << 40);

/// Returns the default read-ahead window of a device in pages. `usual` is the default for devices
/// without strips, and the minimum for the others.
pub fn pages(device: &str, era: Era, usual: u64) -> u64 {
    let bytes = match optimal(device) {
        Some((bytes, md)) if md || era.is_mq() => bytes,
        _ => 0,
    };
    (2 * bytes / PAGE_BYTES).min(MOST_PAGES).max(usual)
}

/// Returns queue/optimal_io_size of a device in bytes, or 0 if the device reports none.
pub fn optimal_bytes(device: &str) -> u64 {
    optimal(device).map_or(0, |o| o.0)
}

/// Returns the optimal request size in bytes, and whether md reports it.
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
