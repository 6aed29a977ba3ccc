//! The schedulers with writeback throttling off and on, to show whether the scheduler or the
//! throttling causes a lead.

use crate::cli::Bench;
use crate::fail::Failure;
use crate::setups::Usual;
use seekwell_sched::{WBT_LAT_USEC, wbt};
use seekwell_sim::Setup;
use std::collections::BTreeSet;

/// Returns whether the device is rotational from the point of view of writeback throttling.
fn rotating(device: &str) -> Result<bool, Failure> {
    let setup = Setup {
        device: device.to_owned(),
        scheduler: "none".to_owned(),
        ..Setup::default()
    };
    let queue = setup.build();
    let mut queue = queue.map_err(|e| Failure::input(e.to_string()))?;
    Ok(queue.wbt_lat_usec() == Some(wbt::ROTATING_USEC))
}

/// Returns the requested schedulers, as for `--schedulers`, followed by additional ones. For each
/// blk-mq scheduler that was named without a throttling target, it adds the opposite setting: off,
/// or on for bfq.
pub fn with_the_other(b: &Bench, usual: &Usual) -> Result<Option<String>, Failure> {
    // The user has set throttling for all schedulers.
    if b.tunable.iter().any(|t| t.contains(WBT_LAT_USEC.name)) {
        return Ok(b.schedulers.clone());
    }
    let all = usual.typed(b)?;
    let given: Vec<&String> = all.iter().map(|t| &t.text).collect();
    let mut texts: Vec<String> = Vec::new();
    let devices = usual.devices(b);
    let kinds: Result<BTreeSet<bool>, Failure> = devices.iter().map(|d| rotating(d)).collect();
    let kinds = kinds?;
    let name = WBT_LAT_USEC.name;
    for t in &all {
        let found = seekwell::words::named(&t.spec.versioned());
        let throttled = found.is_ok_and(|f| f.era.is_mq()) && !t.spec.tunables.contains_key(name);
        let values: BTreeSet<u64> = kinds
            .iter()
            .map(|k| wbt::opposite_usec(&t.spec.name, *k))
            .collect();
        for usec in values.into_iter().filter(|_| throttled) {
            let text = format!("{}:{name}={usec}", t.text);
            if !texts.contains(&text) && !given.contains(&&text) {
                texts.push(text);
            }
        }
    }
    let others = texts.join(",");
    Ok(match &b.schedulers {
        own if others.is_empty() => own.clone(),
        // The user's list stays the default list, so that the kernel's default scheduler stays the
        // reference.
        None => Some(format!("+{others}")),
        Some(list) if list.trim() == "+" => Some(format!("+{others}")),
        Some(list) => Some(format!("{list},{others}")),
    })
}
