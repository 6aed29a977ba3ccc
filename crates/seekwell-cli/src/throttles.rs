//! Schedulers with writeback throttling in both states, to show whether a lead comes from the
//! scheduler or from the throttle.

use crate::cli::Bench;
use crate::fail::Failure;
use crate::setups::Usual;
use seekwell_sched::{WBT_LAT_USEC, wbt};
use seekwell_sim::Setup;
use std::collections::BTreeSet;

/// Whether a device's disk is rotational, as seen by its throttle.
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

/// The schedulers asked for, as `--schedulers` takes them, and behind them each scheduler of blk-mq
/// that was named without a throttling target, with throttling the other way: off, and under bfq on.
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
        // The list stays the usual one, which keeps the kernel's choice as the reference.
        None => Some(format!("+{others}")),
        Some(list) if list.trim() == "+" => Some(format!("+{others}")),
        Some(list) => Some(format!("{list},{others}")),
    })
}
