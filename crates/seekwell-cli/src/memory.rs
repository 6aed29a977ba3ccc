//! Checks the memory for devices with large tables before anything runs. Prints a note, or returns
//! an error if the memory is not available.

use crate::fail::Failure;
use seekwell_device::footprint;

/// Tables below this size are not mentioned, in bytes.
const WORTH_SAYING: u64 = 512 << 20;

/// Returns the bytes that the tables of these devices need in `at_a_time` parallel runs, and the
/// largest device.
fn needed<'a>(devices: impl Iterator<Item = &'a str>, at_a_time: usize) -> Option<(u64, &'a str)> {
    let all = devices.filter_map(|d| Some((footprint(d).ok()?.bytes, d)));
    let (bytes, device) = all.max_by_key(|f| f.0)?;
    Some((bytes.saturating_mul(at_a_time as u64), device))
}

/// Returns the memory that is available without swapping, in bytes, if it is known.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the note, or the reason for a refusal as an error.
fn judge(
    (bytes, device): (u64, &str),
    at_a_time: usize,
    there: Option<u64>,
    forced: bool,
) -> Result<Option<String>, Failure> {
    let size = |n: u64| seekwell_report::units::bytes(n as f64);
    let runs = match at_a_time {
        1 => String::new(),
        n => format!(", {n} runs at a time"),
    };
    let takes = format!("the tables of {device} take {}{runs}", size(bytes));
    let lacking = there.filter(|t| bytes > *t);
    match lacking {
        Some(there) if !forced => Err(Failure::input(format!(
            "{takes}, but this machine has only {} available. Use a larger scale, one run at a \
             time (--threads 1), or --force-memory",
            size(there)
        ))),
        Some(there) => Ok(Some(format!(
            "{takes}; this machine has {} available",
            size(there)
        ))),
        None if bytes >= WORTH_SAYING => Ok(Some(takes)),
        None => Ok(None),
    }
}

/// Prints a note about the memory that the devices need, or returns an error if there is too
/// little. `at_a_time` is the number of parallel runs.
pub fn check<'a>(
    devices: impl Iterator<Item = &'a str>,
    at_a_time: usize,
    forced: bool,
    quiet: bool,
) -> Result<(), Failure> {
    let Some(need) = needed(devices, at_a_time) else {
        return Ok(());
    };
    if let Some(text) = judge(need, at_a_time, available(), forced)? {
        crate::out::note(quiet, &text);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    #[test]
    fn large_memory_use_is_reported_and_excessive_use_rejected_unless_forced() {
        let said =
            |n, there, forced| judge((n, "ssd:x"), 2, there, forced).map_err(|e| e.to_string());
        assert_eq!(said(GB / 4, Some(GB), false), Ok(None));
        let takes = "the tables of ssd:x take 4.00 GB, 2 runs at a time";
        assert_eq!(said(4 * GB, Some(8 * GB), false), Ok(Some(takes.into())));
        assert_eq!(said(4 * GB, None, false), Ok(Some(takes.into())));
        let no = said(4 * GB, Some(2 * GB), false).expect_err("refused");
        assert!(
            no.contains("has only 2.00 GB available") && no.contains("--force-memory"),
            "{no}"
        );
        let yes = said(4 * GB, Some(2 * GB), true).expect("forced");
        assert!(yes.is_some_and(|t| t.contains("has 2.00 GB available")));
    }

    #[test]
    fn most_memory_demanding_device_is_reported() {
        let large = "ssd:nvme-dc-2t,variant=detailed,scale=1";
        let (bytes, of) = needed(["hdd:hitachi-7k200", large].into_iter(), 3).expect("devices");
        assert_eq!(of, large);
        assert!(bytes > 9 * GB, "{bytes}");
    }
}
