//! Finds the mount of a server that was killed, by the error that its mount point returns. Only the
//! requested path is checked.

use rustix::fs::{Mode, OFlags};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The file system type, as `/proc/mounts` shows it.
pub const FS_TYPE: &str = "fuse.seekwell";

/// Decodes octal escapes such as `\040`. mountinfo writes blanks, tabs, newlines and backslashes in
/// this form.
fn unescape(field: &str) -> String {
    let mut out = String::new();
    let mut rest = field;
    while let Some(i) = rest.find('\\') {
        out.push_str(&rest[..i]);
        let code = rest
            .get(i + 1..i + 4)
            .and_then(|c| u8::from_str_radix(c, 8).ok());
        match code {
            Some(c) => {
                out.push(char::from(c));
                rest = &rest[i + 4..];
            }
            None => {
                out.push('\\');
                rest = &rest[i + 1..];
            }
        }
    }
    out + rest
}

/// Returns the types of the file systems that are mounted exactly at `path`. `mountinfo` is the
/// text of `/proc/self/mountinfo`.
fn types_at(mountinfo: &str, path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let point = before.split(' ').nth(4).map(unescape);
        if point.as_deref().map(Path::new) == Some(path) {
            found.extend(after.split(' ').next().map(str::to_owned));
        }
    }
    found
}

/// The mount of a server that has ended.
pub struct Dead {
    /// The mount point, as the kernel reports it.
    pub at: PathBuf,
    /// The file system type.
    pub kind: String,
}

/// Returns the full path of a file, as the kernel reports it. It works for a dead mount too.
fn real(path: &Path) -> Option<PathBuf> {
    let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}

/// Returns the mount at `path` if its server has ended, or `None` if the server is running. `path`
/// may contain symbolic links.
pub fn dead_mount(path: &Path) -> Option<Dead> {
    // If the server has ended, even stat(2) of the directory returns this error.
    let gone = |e: io::Error| e.raw_os_error() == Some(libc::ENOTCONN);
    if !fs::metadata(path).is_err_and(gone) {
        return None;
    }
    let at = real(path)?;
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let kind = types_at(&mountinfo, &at).pop()?;
    Some(Dead { at, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_table_is_parsed_with_its_escapes() {
        let text = "36 35 0:40 / /mnt/a\\040b rw,nosuid - fuse.seekwell seekwell rw\n\
                    37 35 7:0 / /mnt/c rw - ext4 /dev/loop0 rw\nbroken line\n";
        assert_eq!(types_at(text, Path::new("/mnt/a b")), ["fuse.seekwell"]);
        assert_eq!(types_at(text, Path::new("/mnt/c")), ["ext4"]);
        assert!(types_at(text, Path::new("/mnt")).is_empty());
        assert_eq!(unescape("a\\134b\\"), "a\\b\\");
        assert!(dead_mount(Path::new("/")).is_none(), "alive");
    }
}
