//! Settings with which fio itself would leave the directory of the run.

use super::options::is_device;

/// Options that run another program, or that change the machine.
const CHANGES: &[&str] = &[
    "exec_prerun",
    "exec_postrun",
    "ioscheduler",
    "cgroup",
    "uid",
    "gid",
];

/// Engines of fio that use only the files that a job names.
const PLAIN: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "libaio",
    "io_uring",
    "posixaio",
    "null",
    "cpuio",
    "falloc",
    "ftruncate",
    "filecreate",
    "filestat",
    "filedelete",
];

/// Returns true if fio itself, with this option, would use files outside the directory in which it
/// is started, run another program or change the machine.
pub(super) fn leaves_directory(key: &str, value: Option<&str>) -> bool {
    let value = value.unwrap_or_default();
    // Any value can be a path, for example of a log. Only these values can contain a slash and be
    // no path.
    let list = matches!(
        key,
        "bssplit" | "cmdprio_bssplit" | "random_distribution" | "bsrange"
    ) || matches!(key, "blocksize_range" | "description");
    let path = !list && (value.contains('/') || value.contains('\\') || value.contains(".."));
    let engine = key == "ioengine" && !PLAIN.contains(&value);
    path || engine || is_device(value) || CHANGES.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_programs_and_foreign_engines_leave_the_directory() {
        for (key, value) in [
            ("filename", "/dev/sda"),
            ("filename", "a:/etc/b"),
            ("directory", "../x"),
            ("write_bw_log", "/tmp/log"),
            ("mem", "mmaphuge:/mnt/a"),
            ("ioengine", "sg"),
            ("ioengine", "external:./a.so"),
            ("exec_prerun", "reboot"),
            ("ioscheduler", "noop"),
        ] {
            assert!(leaves_directory(key, Some(value)), "{key}={value}");
        }
        for (key, value) in [
            ("filename", "a:b"),
            ("bssplit", "4k/50:8k/50"),
            ("ioengine", "libaio"),
            ("write_bw_log", "log"),
        ] {
            assert!(!leaves_directory(key, Some(value)), "{key}={value}");
        }
        assert!(!leaves_directory("thread", None));
    }
}
