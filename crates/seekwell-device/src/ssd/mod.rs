//! A flash drive: a link to the host, a serial command stage, a buffer, and flash units on
//! channels.
//!
//! Two variants have the same parameters. The *cheap* variant computes the result when a command
//! arrives, from clocks and from counts of pending work. Use it for parameter sweeps, long traces
//! and real-time service. The *detailed* variant has a page map, and simulates every flash
//! operation as an event. The specification `ssd:NAME,variant=detailed,state=steady` selects it.
//! Both variants give the same means.
//!
//! The model leaves out thermal throttling, power states of the link, stalls of the firmware,
//! arbitration among several submission queues (commands carry no queue number), read disturb and
//! errors.

mod cheap;
mod detailed;
mod host;
mod map_cache;
mod params;
mod regions;
mod streams;
mod tree;
pub mod wa;

pub use cheap::CheapSsd;
pub use detailed::{Counts, DetailedSsd, Wear};
pub use params::{DEFS, SsdParams, State, Victim};

use crate::preset::{Preset, Value};

/// Adds the scale of the detailed variant, with an explanation, to the description of a drive. Does
/// not change the description if the parameters give no drive.
pub(crate) fn state_scale(preset: &mut Preset) {
    let sized = SsdParams::from_preset(preset).and_then(|p| detailed::scaled(&p));
    let Ok((p, scale)) = sized else { return };
    let mib = detailed::table_bytes(&p) >> 20;
    if let Some(q) = preset.params.iter_mut().find(|q| q.def.key == "scale") {
        q.value = Value::Num(scale as f64);
        q.reference = format!(
            "the detailed variant offers 1/{scale} of the capacity and takes {mib} MiB of tables"
        );
    }
}

/// Returns the size of the tables that depend on the parameters, in bytes; 0 if the parameters give
/// no drive.
pub(crate) fn footprint(preset: &Preset) -> u64 {
    let Ok(p) = SsdParams::from_preset(preset) else {
        return 0;
    };
    let map = if p.map_cache == 0 {
        0
    } else {
        p.pages.div_ceil(map_cache::COVERS) * 16
    };
    let ring = (2 * u64::from(p.read_ahead)).next_power_of_two() * 8;
    if p.detailed {
        let Ok((q, _)) = detailed::scaled(&p) else {
            return 0;
        };
        let slots = u64::from(q.buffer) + u64::from(q.units) * 2 * u64::from(q.k);
        return detailed::table_bytes(&q) + map + ring + slots * 32;
    }
    let regions = p.pages.div_ceil(regions::REGION) / 4;
    map + ring * streams::STREAMS as u64 + u64::from(p.buffer) * 32 + regions
}
