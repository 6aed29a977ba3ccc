//! Mounted file systems, as `/proc/self/mountinfo` lists them.

use serde::Serialize;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The kernel's number of the mount.
    pub id: u64,
    /// Device number of the file system. The major number is 0 if the file system has no block
    /// device of its own.
    pub numbers: (u32, u32),
    /// Mount point.
    pub point: PathBuf,
    /// Type of the file system, for example `ext4`, `btrfs` or `nfs4`.
    pub filesystem: String,
    /// Source as the file system reports it: a device, the path of a server, or any word.
    pub source: String,
    /// Options of the mount, followed by options of the file system.
    pub options: String,
}

impl Mount {
    /// Parses a line of proc_pid_mountinfo(5): `36 35 98:0 /root /point options [tags] - type
    /// source ..`. Returns `None` if the line is malformed.
    pub fn parse(line: &str) -> Option<Mount> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ');
        let id = left.next()?.parse().ok()?;
        let (major, minor) = left.nth(1)?.split_once(':')?;
        let point = unescape(left.nth(1)?);
        let own = left.next()?;
        let mut right = right.split(' ');
        Some(Mount {
            id,
            numbers: (major.parse().ok()?, minor.parse().ok()?),
            point: PathBuf::from(point),
            filesystem: right.next()?.to_owned(),
            source: unescape(right.next()?),
            options: match right.next() {
                Some(more) => format!("{own},{more}"),
                None => own.to_owned(),
            },
        })
    }

    /// Parses all lines of mountinfo and leaves out malformed lines.
    pub fn table(text: &str) -> Vec<Mount> {
        text.lines().filter_map(Mount::parse).collect()
    }

    /// Returns the value of an option such as `upperdir=..`. A backslash in it escapes a comma or a
    /// colon.
    pub fn option(&self, name: &str) -> Option<String> {
        let mut all = split(&self.options, ',').into_iter();
        all.find_map(|o| Some(o.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }
}

/// Splits a list at a separator and leaves out empty parts. An escaped separator does not split.
pub fn split(text: &str, by: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut kept = false;
    for c in text.chars() {
        if c == by && !kept {
            parts.push(String::new());
            continue;
        }
        kept = c == '\\' && !kept;
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.retain(|p| !p.is_empty());
    parts
}

/// Returns the mount of a path: the mount whose mount point is the longest prefix of the path. Of
/// two mounts on the same point, the later mount hides the earlier.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|m| path.starts_with(&m.point))
        .max_by_key(|m| m.point.as_os_str().len())
}

/// Decodes octal escapes such as `\040`, which replace blanks and backslashes.
pub fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&b, tail)) = rest.split_first() {
        let code = match (b, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'))
            }
            _ => None,
        };
        out.push(code.unwrap_or(b));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_table_escapes_are_decoded() {
        assert_eq!(unescape("a\\040b\\134c\\9"), "a b\\c\\9");
        assert_eq!(split("a\\,b,,c", ','), ["a\\,b", "c"]);
    }

    #[test]
    fn mount_table_line_is_parsed() {
        let line = "36 35 98:0 /mnt1 /mnt2\\040x rw,noatime master:1 - ext3 /dev/root rw,errors=x";
        let m = Mount::parse(line).expect("a mount");
        assert_eq!((m.id, m.numbers), (36, (98, 0)));
        assert_eq!(m.point, Path::new("/mnt2 x"));
        assert_eq!(m.option("errors").as_deref(), Some("x"));
        assert_eq!(m.option("error"), None);
        for broken in ["", "36", "36 35 98 / / rw - ext3 x", "a b c d e f g - h"] {
            assert_eq!(Mount::parse(broken), None, "{broken}");
        }
    }
}
