//! Translates the type and the mount options of a real file system.

use seekwell_core::spec::{MAX_COMMIT_S, MachineSpec};

/// Options without an effect on the simulated requests, or with the simulator's own behaviour.
const SAME: &[&str] = &[
    "rw",
    "ro",
    "relatime",
    "noatime",
    "nodiratime",
    "strictatime",
    "nosuid",
    "suid",
    "nodev",
    "dev",
    "noexec",
    "exec",
    "seclabel",
    "user_xattr",
    "acl",
    "barrier",
    "delalloc",
    "async",
    "nouser_xattr",
    "noacl",
    "bsddf",
    "minixdf",
    "grpid",
    "nogrpid",
    "block_validity",
    "init_itable",
    "noinit_itable",
    "auto_da_alloc",
    "i_version",
];
/// Options with a value, for which the same is true.
const SAME_VALUED: &[&str] = &["errors", "resuid", "resgid", "sb", "context", "init_itable"];

/// Applies the file system to `machine`. Returns what the simulation cannot carry, in words.
pub(super) fn carry(fs: &str, options: &str, machine: &mut MachineSpec) -> Vec<String> {
    let mut left = Vec::new();
    match fs {
        "ext3" | "ext4" => machine.fs = Some(fs.to_owned()),
        "" => left.push("a raw device: the workloads run on a simulated ext4".to_owned()),
        other => {
            left.push(format!("file system {other}: simulated as ext4"));
            // The options of another file system have other meanings.
            return left;
        }
    }
    for option in options.split(',').map(str::trim).filter(|o| !o.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name, value) {
            ("data", "ordered" | "writeback") => machine.data = Some(value.to_owned()),
            ("commit", seconds) => match seconds.parse().ok().filter(|s| *s <= MAX_COMMIT_S) {
                Some(s) => machine.commit_s = Some(s),
                None => left.push(format!("mount option {option}")),
            },
            ("nobarrier", "") | ("barrier", "0") => machine.barriers = Some(false),
            ("barrier", "1") => machine.barriers = Some(true),
            (name, "") if SAME.contains(&name) => {}
            (name, _) if SAME_VALUED.contains(&name) => {}
            _ => left.push(format!("mount option {option}")),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(fs: &str, options: &str) -> (MachineSpec, Vec<String>) {
        let mut m = MachineSpec::default();
        let left = carry(fs, options, &mut m);
        (m, left)
    }

    #[test]
    fn journal_mode_commit_interval_and_barriers_are_carried() {
        let (m, left) = carried(
            "ext4",
            "rw,relatime,errors=remount-ro,data=writeback,commit=30",
        );
        assert_eq!(
            (m.fs.as_deref(), m.data.as_deref()),
            (Some("ext4"), Some("writeback"))
        );
        assert_eq!((m.commit_s, m.barriers, left.len()), (Some(30), None, 0));
        assert_eq!(carried("ext3", "barrier=0").0.barriers, Some(false));
        assert_eq!(carried("ext4", "nobarrier").0.barriers, Some(false));
    }

    #[test]
    fn options_without_a_model_are_listed() {
        let (m, left) = carried("ext4", "rw,discard,data=journal,nodelalloc,commit=x");
        let all = ["discard", "data=journal", "nodelalloc", "commit=x"];
        assert_eq!(left, all.map(|o| format!("mount option {o}")));
        assert_eq!((m.data, m.commit_s), (None, None));
    }

    #[test]
    fn another_file_system_is_simulated_as_ext4_and_listed() {
        let (m, left) = carried("xfs", "rw,data=writeback");
        assert_eq!(left, ["file system xfs: simulated as ext4"]);
        assert_eq!((m.fs, m.data), (None, None));
        assert!(carried("", "").1[0].contains("raw device"));
    }
}
