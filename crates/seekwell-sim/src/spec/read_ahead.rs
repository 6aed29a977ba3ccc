//! The kernel's default for queue/read_ahead_kb.
//!
//! The default is 128 KiB, or twice the optimal request size of the device below if that is larger.
//! A window of 128 KiB spans two strips of 64 KiB, so one reader keeps two disks of an array busy,
//! however many disks there are. md sets this for its striped arrays in every modelled kernel.
//! Since 5.10 the block layer sets it for all devices that report an optimal size ("block: lift
//! setting the readahead size into the block layer"). So a controller's drives have the larger
//! window only under blk-mq. Devices without strips pass on the value from below. Not modelled:
//! changes by tools (LVM's `--readahead auto`, udev).

use seekwell_core::{Era, Sector};
use seekwell_device::raid::{ArrayParams, Combined, Layout};
use seekwell_device::{ControllerParams, read_preset};

const PAGE_BYTES: u64 = 4096;
/// Largest configurable window in pages: 64 MiB.
const MOST_PAGES: u64 = 16_384;
/// Size of a member where it does not matter.
const ANY: Sector = Sector(1 << 40);

/// Default window of a device in pages; `usual` applies to devices without strips.
pub fn pages(device: &str, era: Era, usual: u64) -> u64 {
    let bytes = match optimal(device) {
        Some((bytes, md)) if md || era.is_mq() => bytes,
        _ => 0,
    };
    (2 * bytes / PAGE_BYTES).min(MOST_PAGES).max(usual)
}

/// queue/optimal_io_size of a device; 0 if it reports none.
pub fn optimal_bytes(device: &str) -> u64 {
    optimal(device).map_or(0, |o| o.0)
}

/// The optimal size, and whether md reports it.
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
