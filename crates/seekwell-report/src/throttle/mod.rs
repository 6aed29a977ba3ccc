//! Writeback throttling in reports: its active value under each scheduler, and whether the
//! scheduler or the throttling causes a lead.

use crate::compare::PROSE;
use crate::table::wrap;
use seekwell_core::prose::in_prose;
use seekwell_lab::analysis::{Analysis, Group, percent, size};
use seekwell_lab::results::{Results, Treatment};
use seekwell_sched::WBT_LAT_USEC;

/// Joins names: "a", "a and b", "a, b and c".
fn list(names: &[&str]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        names => names.concat(),
    }
}

fn value(usec: u64) -> String {
    match usec {
        0 => "off".to_owned(),
        usec => usec.to_string(),
    }
}

/// Returns the active throttling target of a treatment on each device, in us, in the order of the
/// cells.
fn in_force(results: &Results, treatment: usize) -> Vec<(&str, u64)> {
    let mut all: Vec<(&str, u64)> = Vec::new();
    for cell in &results.cells {
        let own = cell.throttled.iter().find(|t| t.treatment == treatment);
        let Some(own) = own else { continue };
        let entry = (cell.device.as_str(), own.wbt_lat_usec);
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all
}

/// Describes the values, for example "2000", "75000 on sda and 2000 on sdb".
fn describe_values(devices: &[(&str, u64)]) -> String {
    let mut values: Vec<(u64, Vec<&str>)> = Vec::new();
    for (device, usec) in devices {
        match values.iter_mut().find(|v| v.0 == *usec) {
            Some(v) => v.1.push(device),
            None => values.push((*usec, vec![device])),
        }
    }
    if let [(usec, _)] = values[..] {
        return value(usec);
    }
    let each = values.iter();
    let each: Vec<String> = each
        .map(|(usec, on)| format!("{} on {}", value(*usec), list(on)))
        .collect();
    each.join(", ")
}

/// Returns the target that was written, if it had no effect.
fn ignored(t: &Treatment, devices: &[(&str, u64)]) -> Option<u64> {
    let written: u64 = t.tunables.get(WBT_LAT_USEC.name)?.parse().ok()?;
    (written > 0 && devices.iter().any(|d| d.1 == 0)).then_some(written)
}

/// Returns, for example, "Writeback throttling (wbt_lat_usec): none, kyber 2000; bfq off." Returns
/// an empty text if no scheduler's layer has writeback throttling, or if the values are unknown.
pub fn line(results: &Results) -> String {
    let mut alike: Vec<(String, Vec<&str>)> = Vec::new();
    let mut notes = String::new();
    for (i, t) in results.treatments.iter().enumerate() {
        let devices = in_force(results, i);
        if devices.is_empty() {
            continue;
        }
        let text = describe_values(&devices);
        match alike.iter_mut().find(|a| a.0 == text) {
            Some(a) => a.1.push(&t.label),
            None => alike.push((text, vec![&t.label])),
        }
        if let Some(usec) = ignored(t, &devices) {
            notes += &format!(
                " {} had no effect: {} keeps throttling off, and the kernel ignores a write of \
                 the value that it already stores; write {}.",
                t.label,
                t.scheduler,
                usec + 1
            );
        }
    }
    if alike.is_empty() {
        return String::new();
    }
    let each = alike.iter();
    let each: Vec<String> = each
        .map(|(text, names)| format!("{} {text}", names.join(", ")))
        .collect();
    format!(
        "Writeback throttling (wbt_lat_usec): {}.{notes}",
        each.join("; ")
    )
}

/// Returns the text of [`line()`], wrapped to the width. The text is empty if the values are
/// unknown.
pub fn lines(results: &Results, width: usize) -> String {
    match line(results) {
        none if none.is_empty() => none,
        text => wrap(&text, 0, width.min(PROSE)),
    }
}

/// A treatment of a group, with its throttling.
struct Variant<'a> {
    treatment: &'a Treatment,
    usec: u64,
    /// The factor by which the treatment is better than the reference.
    times: f64,
    at: usize,
}

impl Variant<'_> {
    /// Returns whether the two treatments differ only in the throttling.
    fn same(&self, other: &Self) -> bool {
        let rest = |t: &Treatment| {
            let all = t.tunables.iter().filter(|k| k.0 != WBT_LAT_USEC.name);
            all.map(|(k, v)| (k.clone(), v.clone())).collect::<Vec<_>>()
        };
        let (a, b) = (self.treatment, other.treatment);
        (&a.scheduler, &a.version, rest(a)) == (&b.scheduler, &b.version, rest(b))
    }
    fn on(&self) -> bool {
        self.usec > 0
    }
}

/// Returns the treatments of a group whose throttling is known.
fn variants<'a>(results: &'a Results, analysis: &Analysis, group: &Group) -> Vec<Variant<'a>> {
    let usec = |t: usize| {
        let mut all = analysis.measured(results, group).flat_map(|c| &c.throttled);
        all.find(|x| x.treatment == t).map(|x| x.wbt_lat_usec)
    };
    let one = |s: &seekwell_lab::analysis::Score| {
        Some(Variant {
            treatment: results.treatments.get(s.treatment)?,
            usec: usec(s.treatment)?,
            times: s.times,
            at: s.treatment,
        })
    };
    group.scores.iter().filter_map(one).collect()
}

/// Describes a factor: "2.2 times ahead of", "12 % behind", "within 2 % of".
fn against(times: f64, margin: f64) -> String {
    match times {
        t if t > 1.0 + margin => format!("{} ahead of", size(t)),
        t if t < 1.0 / (1.0 + margin) => format!("{} behind", size(1.0 / t)),
        _ => format!("within {} of", percent(margin)),
    }
}

/// The cause of a lead.
pub(crate) struct Share {
    /// The cause in a sentence.
    pub(crate) text: String,
    /// Whether the throttling alone is the cause.
    pub(crate) throttle: bool,
}

/// Compares the leading treatment with the same scheduler under the other throttling, and with the
/// best other scheduler under the same throttling.
pub(crate) fn share(results: &Results, analysis: &Analysis, group: &Group) -> Option<Share> {
    let margin = analysis.method.margin;
    let all = variants(results, analysis, group);
    let lead = match group.decision.as_str() {
        "cannot_tell" => group.best?,
        _ => group.pick.or(group.best)?,
    };
    let lead = all.iter().find(|v| v.at == lead)?;
    let other = all.iter().find(|v| v.same(lead) && v.on() != lead.on())?;
    let rivals = all.iter().filter(|v| !v.same(lead) && v.on() == lead.on());
    let rival = rivals.reduce(|a, b| if b.times > a.times { b } else { a })?;
    let (by_throttle, by_scheduler) = (lead.times / other.times, lead.times / rival.times);
    let matters = |times: f64| times > 1.0 + margin;
    let what = match (matters(by_throttle), matters(by_scheduler)) {
        (true, false) => "The throttle makes the difference, not the scheduler",
        (false, true) => "The scheduler makes the difference, not the throttle",
        (true, true) => "Throttle and scheduler both make a difference",
        (false, false) => "Neither the throttle nor the scheduler makes a difference here",
    };
    let with = |usec: u64| match usec {
        0 => "throttling off".to_owned(),
        usec => format!("wbt_lat_usec {usec}"),
    };
    let text = format!(
        "{what}: with {} {} is {} itself with {}, and {} {} with the same throttle.",
        with(lead.usec),
        in_prose(&lead.treatment.scheduler),
        against(by_throttle, margin),
        with(other.usec),
        against(by_scheduler, margin),
        in_prose(&rival.treatment.scheduler),
    );
    Some(Share {
        text,
        throttle: matters(by_throttle) && !matters(by_scheduler),
    })
}

/// Describes a label as a setting, for example "bfq with wbt_lat_usec=75001".
pub(crate) fn setting(label: &str) -> String {
    match label.split_once(':') {
        Some((name, set)) if set.contains(WBT_LAT_USEC.name) => {
            format!("{name} with {}", set.replace(':', ", "))
        }
        _ => label.to_owned(),
    }
}

#[cfg(test)]
mod tests;
