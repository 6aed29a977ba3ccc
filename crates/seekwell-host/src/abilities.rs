//! Reports the abilities of this machine: which facilities the commands can use, and which are
//! missing. It changes nothing on the machine.
//!
//! It does not measure speeds, and does not check whether a disk may be used. `seekwell host`
//! reports on disks.

use crate::ring::Ring;
use crate::watch::{BpfTrace, has_program};
use rustix::fs::{Access, access};
use std::collections::BTreeSet;
use std::path::Path;

/// A facility that some commands need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// Name of the facility.
    pub name: &'static str,
    /// The commands that need it, and what they use it for.
    pub of: &'static str,
    /// What was found, or what is missing.
    pub found: String,
    /// What the user can do to make it usable. `None` if it is usable.
    pub remedy: Option<String>,
}

impl Ability {
    /// Returns whether the facility is usable.
    pub fn usable(&self) -> bool {
        self.remedy.is_none()
    }
}

/// Queries to the machine. Tests replace them.
pub trait Machine {
    /// Returns whether this process runs as root.
    fn root(&self) -> bool;
    /// Returns whether this process may read the path, or write it if `write` is set.
    fn may(&self, path: &str, write: bool) -> bool;
    /// Returns whether the path exists.
    fn there(&self, path: &str) -> bool;
    /// Returns whether the program is installed.
    fn program(&self, name: &str) -> bool;
    /// Returns the reason why BPF programs cannot run, or `None` if they can.
    fn bpf(&self) -> Option<String>;
    /// Returns the reason why io_uring cannot be used, or `None` if it can.
    fn io_uring(&self) -> Option<String>;
    /// Returns the schedulers that the kernel offers for at least one disk.
    fn schedulers(&self) -> BTreeSet<String>;
}

/// The machine on which this program runs.
pub struct Here;

impl Machine for Here {
    fn root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }
    fn may(&self, path: &str, write: bool) -> bool {
        let how = match write {
            true => Access::READ_OK | Access::WRITE_OK,
            false => Access::READ_OK,
        };
        access(path, how).is_ok()
    }
    fn there(&self, path: &str) -> bool {
        Path::new(path).exists()
    }
    fn program(&self, name: &str) -> bool {
        has_program(name)
    }
    fn bpf(&self) -> Option<String> {
        BpfTrace::open(0).err().map(|e| e.to_string())
    }
    fn io_uring(&self) -> Option<String> {
        Ring::new(1).err().map(|e| e.to_string())
    }
    fn schedulers(&self) -> BTreeSet<String> {
        let disks = std::fs::read_dir("/sys/block").into_iter().flatten();
        let files = disks.flatten().map(|d| d.path().join("queue/scheduler"));
        let texts = files.filter_map(|f| std::fs::read_to_string(f).ok());
        let each = |t: String| {
            let names = t.split_whitespace().map(|w| w.trim_matches(['[', ']']));
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        texts.flat_map(each).collect()
    }
}

/// Usual mount points of tracefs.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Schedulers of blk-mq with the kernel module of each. `none` needs no module.
const MODULES: [(&str, &str); 3] = [
    ("mq-deadline", "mq-deadline"),
    ("kyber", "kyber-iosched"),
    ("bfq", "bfq"),
];

/// Returns all facilities that commands need, except for simulation. The most important facility
/// comes first.
pub fn abilities(m: &dyn Machine) -> Vec<Ability> {
    let root = m.root();
    let become_root = "run it as root (sudo)";
    let able = |name, of, found: &str, remedy: Option<String>| Ability {
        name,
        of,
        found: found.to_owned(),
        remedy,
    };
    let install = |there: bool, package: &str| {
        (!there).then(|| format!("install {package} (apt-get install {package})"))
    };
    let device = |path: &str, module: &str| match (m.there(path), m.may(path, true)) {
        (false, _) => Some(format!("modprobe {module}")),
        (true, false) => Some(become_root.to_owned()),
        (true, true) => None,
    };
    let offered = m.schedulers();
    let lacking = MODULES.iter().filter(|(name, _)| !offered.contains(*name));
    let modules: Vec<&str> = lacking.map(|(_, module)| *module).collect();
    let names: Vec<&str> = offered.iter().map(String::as_str).collect();
    let events = TRACEFS.map(|t| format!("{t}/events/block"));
    let traced = events.iter().any(|e| m.may(e, false));
    let trace_remedy = match (traced, root, TRACEFS.iter().any(|t| m.there(t))) {
        // If tracefs is not mounted, a command mounts it while it runs.
        (true, ..) | (false, true, true) => None,
        (false, false, true) => Some(become_root.to_owned()),
        _ => Some("boot a kernel with CONFIG_BLK_DEV_IO_TRACE".to_owned()),
    };
    let bpf = match (root, m.bpf()) {
        (_, None) => None,
        (false, Some(_)) => Some(become_root.to_owned()),
        (true, Some(why)) => Some(format!("record uses tracefs instead: {why}")),
    };
    vec![
        able(
            "root",
            "switch, apply, record, check-worlds, verify-kernel",
            if root { "this user" } else { "not this user" },
            (!root).then(|| become_root.to_owned()),
        ),
        able(
            "schedulers",
            "switch, apply, compare --host",
            &match names.is_empty() {
                true => "no disk of this machine has a scheduler".to_owned(),
                false => names.join(", "),
            },
            (!modules.is_empty() && !names.is_empty())
                .then(|| format!("modprobe {}", modules.join(" "))),
        ),
        able(
            "tracefs",
            "record, check-worlds, verify-kernel",
            "the kernel's block events",
            trace_remedy,
        ),
        able("BPF", "record at full rate", "programs at tracepoints", bpf),
        able(
            "io_uring",
            "run --dir, calibrate",
            "reads and writes at a queue depth above 1",
            m.io_uring()
                .map(|why| format!("sysctl kernel.io_uring_disabled=0, or Linux 5.1 ({why})")),
        ),
        able("FUSE", "serve", "/dev/fuse", device("/dev/fuse", "fuse")),
        able(
            "loop devices",
            "check-worlds, verify-kernel, serve",
            "/dev/loop-control",
            device("/dev/loop-control", "loop"),
        ),
        able(
            "ext4 tools",
            "check-worlds",
            "mkfs.ext4, debugfs",
            install(m.program("mkfs.ext4") && m.program("debugfs"), "e2fsprogs"),
        ),
        able(
            "udev",
            "apply --persist",
            "rules for the next boots",
            (!m.program("udevadm")).then(|| "apply --persist=tuned or =nixos".to_owned()),
        ),
        able(
            "PostgreSQL",
            "compare --host -w pgbench",
            "pgbench",
            install(m.program("pgbench"), "postgresql"),
        ),
        able(
            "fio",
            "fio job files in real runs; simulations do not need fio",
            "fio",
            install(m.program("fio"), "fio"),
        ),
        able(
            "chromium",
            "pictures of reports; any browser can show reports",
            "headless",
            install(
                ["chromium", "chromium-browser", "google-chrome"]
                    .iter()
                    .any(|p| m.program(p)),
                "chromium",
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated machine that has either all facilities or none.
    struct Made {
        all: bool,
        root: bool,
    }

    impl Machine for Made {
        fn root(&self) -> bool {
            self.root
        }
        fn may(&self, _: &str, _: bool) -> bool {
            self.all && self.root
        }
        fn there(&self, _: &str) -> bool {
            self.all
        }
        fn program(&self, _: &str) -> bool {
            self.all
        }
        fn bpf(&self) -> Option<String> {
            (!self.all || !self.root).then(|| "EPERM".to_owned())
        }
        fn io_uring(&self) -> Option<String> {
            (!self.all).then(|| "ENOSYS".to_owned())
        }
        fn schedulers(&self) -> BTreeSet<String> {
            let names = ["none", "mq-deadline", "kyber", "bfq"];
            let have = if self.all { &names[..] } else { &names[..2] };
            have.iter().map(|n| n.to_string()).collect()
        }
    }

    fn abilities_with(all: bool, root: bool) -> Vec<Ability> {
        abilities(&Made { all, root })
    }

    #[test]
    fn only_missing_abilities_have_a_remedy() {
        assert!(abilities_with(true, true).iter().all(Ability::usable));
        let none = abilities_with(false, false);
        assert!(none.iter().all(|a| !a.usable()), "{none:?}");
        let remedy = |name: &str| {
            let a = none.iter().find(|a| a.name == name).expect("known");
            a.remedy.clone().unwrap_or_default()
        };
        assert_eq!(remedy("schedulers"), "modprobe kyber-iosched bfq");
        assert_eq!(remedy("FUSE"), "modprobe fuse");
        assert!(remedy("fio").contains("apt-get install fio"));
        assert!(remedy("tracefs").contains("CONFIG_BLK_DEV_IO_TRACE"));
    }

    #[test]
    fn remedy_for_privileged_abilities_is_root() {
        for a in abilities_with(true, false).iter().filter(|a| !a.usable()) {
            assert_eq!(
                a.remedy.as_deref(),
                Some("run it as root (sudo)"),
                "{}",
                a.name
            );
        }
        let names: Vec<&str> = abilities_with(true, false)
            .iter()
            .filter(|a| a.usable())
            .map(|a| a.name)
            .collect();
        assert!(
            names.contains(&"io_uring") && names.contains(&"fio"),
            "{names:?}"
        );
    }

    /// The report works on any machine and changes nothing.
    #[test]
    fn abilities_of_this_machine_are_detected() {
        assert!(abilities(&Here).len() >= 12);
    }
}
