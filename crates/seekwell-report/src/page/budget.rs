//! Limits the size of the page, because it is sent by mail and opened on phones.

use super::index::{Index, Lane, Scene};
use super::{Closer, SCRIPT, STYLE, closer, scene};

/// Maximum size of the page, in bytes.
const PAGE_BYTES: usize = 3_800_000;
/// Maximum size of the windows of events, in bytes. It is a part of [`PAGE_BYTES`].
const SCENES_BYTES: usize = 1_400_000;
/// Maximum and minimum number of events per lane.
const EVENTS: (usize, usize) = (60_000, 2_000);
/// Numbers of seconds that are merged into one step. They are tried in this order until the page
/// fits.
const STEPS: [usize; 7] = [1, 2, 5, 10, 30, 60, 300];

/// The name of a part, and its packed text.
pub(super) type Part = (String, String);

/// Contents of the page other than its text.
#[derive(Default)]
pub(super) struct Packed {
    /// Indexed by the cell.
    pub details: Vec<Option<Part>>,
    pub scenes: Vec<Scene>,
    pub lanes: Vec<Part>,
    /// Sentences about data that were reduced or omitted.
    pub thinned: Vec<String>,
}

/// Returns the bytes that remain after the script, style, index and text.
pub(super) fn left(index: &Index) -> usize {
    let json = serde_json::to_string(index).map_or(0, |j| j.len());
    let words: usize = index.rows.iter().map(|r| r.words.len() + 200).sum();
    PAGE_BYTES.saturating_sub(json + words + SCRIPT.len() + STYLE.len() + 40_000)
}

fn lanes(of: &Closer<'_>, most: usize) -> (Vec<Scene>, Vec<Part>) {
    let (mut scenes, mut parts) = (Vec::new(), Vec::new());
    for (i, s) in of.scenes.iter().enumerate() {
        let mut lanes = Vec::new();
        for lane in &s.lanes {
            let Some(p) = scene::pack(lane, most).filter(|p| p.events > 0) else {
                continue;
            };
            let part = format!("w{i}.{}", lane.treatment);
            lanes.push(Lane {
                s: lane.treatment,
                part: part.clone(),
                length: p.length_ns,
            });
            parts.push((part, p.part));
        }
        if !lanes.is_empty() {
            scenes.push(Scene {
                row: s.cell,
                block: s.block,
                from: s.from_ns,
                lanes,
            });
        }
    }
    (scenes, parts)
}

fn size(parts: &[Part]) -> usize {
    parts.iter().map(|p| p.1.len() + 60).sum()
}

/// Packs as many details as fit into `bytes`.
pub(super) fn pack(of: &Closer<'_>, bytes: usize) -> Packed {
    let mut out = Packed::default();
    let room = SCENES_BYTES.min(bytes / 2);
    let mut most = EVENTS.0;
    (out.scenes, out.lanes) = lanes(of, most);
    while size(&out.lanes) > room && most > EVENTS.1 {
        most /= 2;
        (out.scenes, out.lanes) = lanes(of, most);
    }
    while size(&out.lanes) > room {
        let Some(last) = out.scenes.pop() else { break };
        let gone = |p: &Part| last.lanes.iter().any(|l| l.part == p.0);
        out.lanes.retain(|p| !gone(p));
    }
    if most < EVENTS.0 {
        out.thinned.push(format!(
            "The replay has the first {most} events of each of its windows, to keep the file small."
        ));
    }
    let left = bytes.saturating_sub(size(&out.lanes));
    for (i, step) in STEPS.into_iter().enumerate() {
        let all = of.details.iter().enumerate();
        let part = |(c, d)| Some((format!("t{c}"), closer::pack(d, step)?));
        out.details = all.map(part).collect();
        let sum: usize = out.details.iter().flatten().map(|p| p.1.len() + 60).sum();
        if sum <= left {
            if step > 1 {
                out.thinned.push(format!(
                    "The performance over time is shown in steps of {step} s, each with its \
                     lowest and highest second, to keep the file small."
                ));
            }
            return out;
        }
        if i + 1 == STEPS.len() {
            break;
        }
    }
    // If the details are still too large, the last parts are omitted.
    let mut sum = 0;
    let before = out.details.iter().flatten().count();
    for part in &mut out.details {
        sum += part.as_ref().map_or(0, |p| p.1.len() + 60);
        if sum > left {
            *part = None;
        }
    }
    let after = out.details.iter().flatten().count();
    out.thinned.push(format!(
        "Percentiles and performance over time of {} tests are left out, to keep the file small; \
         they are in the results folder.",
        before - after
    ));
    out
}
