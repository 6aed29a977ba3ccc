//! Checks what this machine needs before anything is changed. One message lists all missing
//! requirements and their remedies.

use super::WorldsError;
use seekwell_host::watch::has_program;
use std::path::Path;

/// Required programs, and the package that contains each.
const PROGRAMS: &[(&str, &str)] = &[
    ("mkfs.ext4", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
    ("losetup", "mount, or util-linux"),
    ("mount", "mount, or util-linux"),
    ("umount", "mount, or util-linux"),
];

/// Returns the missing requirements, one line each.
fn missing(raw: bool, there: impl Fn(&str) -> bool, program: impl Fn(&str) -> bool) -> Vec<String> {
    let mut m = Vec::new();
    if !there("/dev/loop-control") {
        m.push("no loop devices (/dev/loop-control): modprobe loop".to_owned());
    }
    if !raw && !there("/dev/fuse") {
        m.push(
            "no FUSE (/dev/fuse): modprobe fuse, or use --raw to run without the modelled disk"
                .to_owned(),
        );
    }
    if !there("/sys/kernel/tracing") {
        m.push(
            "no tracefs (/sys/kernel/tracing): a kernel with CONFIG_FTRACE and \
             CONFIG_BLK_DEV_IO_TRACE is needed"
                .to_owned(),
        );
    }
    for (name, package) in PROGRAMS {
        if !program(name) {
            m.push(format!("no {name}: install the package {package}"));
        }
    }
    m
}

/// Checks all requirements of this machine.
pub fn check(raw: bool) -> Result<(), WorldsError> {
    if !rustix::process::geteuid().is_root() {
        return Err(WorldsError::input(
            "check-worlds makes a loop device, mounts a file system on it and traces it: run it as \
             root (sudo seekwell check-worlds)",
        ));
    }
    let m = missing(raw, |path| Path::new(path).exists(), has_program);
    match m.is_empty() {
        true => Ok(()),
        false => Err(WorldsError::input(format!(
            "check-worlds cannot run here:\n  {}",
            m.join("\n  ")
        ))),
    }
}

/// Creates the directory for traces if it does not exist, and checks that it is writable.
pub fn directory(dir: &Path) -> Result<(), WorldsError> {
    let failed = |e: std::io::Error| {
        WorldsError::input(format!(
            "--keep {}: {e}; choose a directory that can be created or written",
            dir.display()
        ))
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    seekwell_files::check_directory(dir).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_thing_is_named_with_its_remedy() {
        assert!(missing(false, |_| true, |_| true).is_empty());
        let all = missing(false, |_| false, |_| false);
        assert_eq!(all.len(), 3 + PROGRAMS.len());
        for line in &all {
            let remedy = ["modprobe", "install", "kernel with"];
            assert!(remedy.iter().any(|r| line.contains(r)), "{line}");
        }
        let raw = missing(true, |path| path != "/dev/fuse", |_| true);
        assert!(raw.is_empty(), "{raw:?}");
    }

    #[test]
    fn a_directory_is_made_and_a_file_is_refused() {
        let dir = std::env::temp_dir().join(format!("seekwell-needs-{}", std::process::id()));
        directory(&dir.join("a/b")).expect("made");
        std::fs::write(dir.join("file"), "").expect("written");
        let e = directory(&dir.join("file/x")).expect_err("below a file");
        let text = e.to_string();
        assert!(
            text.contains("file/x") && text.contains("choose a directory"),
            "{text}"
        );
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
