//! The ranges of the queue settings.

use super::{QueueSpec, SpecErrors};

/// Checks that the queue settings are within their ranges.
///
/// # Errors
/// Returns all settings that are out of range.
pub fn queue(q: &QueueSpec) -> Result<(), SpecErrors> {
    let mut errors = SpecErrors::default();
    let some = |n: Option<u32>| n.map(u64::from);
    for (name, value, min, max) in [
        ("hz", Some(q.hz.into()), 24, 10_000),
        ("nr_requests", some(q.nr_requests), 4, 10_240),
        ("depth", some(q.depth), 1, 65_536),
        ("max_sectors_kb", some(q.max_sectors_kb), 4, 32_767),
        ("max_segments", some(q.max_segments), 1, 65_535),
        ("nomerges", Some(q.nomerges.into()), 0, 2),
    ] {
        if let Some(value) = value.filter(|v| !(min..=max).contains(v)) {
            let what = format!("{name} {value} is outside {min}..={max}");
            errors.push(name, what);
        }
    }
    errors.or(())
}
