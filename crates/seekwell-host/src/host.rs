//! Describes the machine of a run on the host, for the record of the run. Everything is found by
//! reading files.

use seekwell_core::result::Host;
use std::fs;
use std::path::Path;

/// Describes this machine and the file system of the path `place`. Values that cannot be read are
/// empty or 0.
pub fn describe(place: &Path, raw: bool) -> Host {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let (fs, mount_options) = match raw {
        true => Default::default(),
        false => crate::inforce::mounted(place).unwrap_or_default(),
    };
    Host {
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        cpu: cpu(&read("/proc/cpuinfo")),
        cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        fs,
        mount_options,
    }
}

/// Returns the model of the first processor. On ARM the kernel does not report a name, so the part
/// numbers are returned.
fn cpu(cpuinfo: &str) -> String {
    let of = |name: &str| {
        let mut pairs = cpuinfo.lines().filter_map(|l| l.split_once(':'));
        pairs.find(|p| p.0.trim() == name).map(|p| p.1.trim())
    };
    match (of("model name"), of("CPU implementer"), of("CPU part")) {
        (Some(name), ..) => name.to_owned(),
        (None, Some(maker), Some(part)) => format!("implementer {maker} part {part}"),
        _ => String::new(),
    }
}

fn memory_bytes(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kib = line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_and_memory_are_parsed() {
        let intel = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nmodel\t\t: 85\n";
        assert_eq!(cpu(intel), "Intel(R) Xeon(R)");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n";
        assert_eq!(cpu(arm), "implementer 0x41 part 0xd08");
        assert_eq!(
            memory_bytes("MemTotal:        3927 kB\nMemFree: 1 kB\n"),
            3927 << 10
        );
        assert_eq!((cpu(""), memory_bytes("")), (String::new(), 0));
    }

    #[test]
    fn host_description_of_this_machine_is_complete() {
        let h = describe(Path::new("/"), false);
        assert!(
            !h.kernel.is_empty() && h.cores > 0 && h.memory_bytes > 0,
            "{h:?}"
        );
        assert!(!h.fs.is_empty() && !h.mount_options.is_empty(), "{h:?}");
        assert_eq!(describe(Path::new("/"), true).fs, "");
    }
}
