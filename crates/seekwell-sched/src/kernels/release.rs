//! A kernel release, as users and `uname -r` write it.

use std::fmt;

/// A release of Linux, for example `6.8`, `2.6.32` or `5.15.0-91-generic`. Since 3.0 the third
/// number counts stable updates and is ignored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Release([u16; 3]);

impl Release {
    /// Returns the release with these numbers. `patch` is ignored since 3.0.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Release([major, minor, if major < 3 { patch } else { 0 }])
    }
    /// Parses `6.8`, `v6.8`, `2.6.32.71` or the output of `uname -r`. Returns `None` if the text is
    /// not a Linux release.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let text = text[..end.unwrap_or(text.len())].trim_end_matches('.');
        let numbers: Vec<u16> = text
            .split('.')
            .map(|n| n.parse().ok())
            .collect::<Option<_>>()?;
        match numbers[..] {
            [major, minor] => Some(Release::new(major, minor, 0)),
            // 2.6.32.71 is a stable update of 2.6.32.
            [major, minor, patch] | [major @ 2, minor, patch, _] => {
                Some(Release::new(major, minor, patch))
            }
            _ => None,
        }
    }
    /// Returns the release before this one.
    pub(super) const fn before(self) -> Release {
        match self.0 {
            [3, 0, _] => Release([2, 6, 39]),
            [4, 0, _] => Release([3, 19, 0]),
            [5, 0, _] => Release([4, 20, 0]),
            [major, 0, _] => Release([major - 1, 19, 0]),
            [2, minor, patch] => Release([2, minor, patch.saturating_sub(1)]),
            [major, minor, _] => Release([major, minor - 1, 0]),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}")?;
        match major < 3 {
            true => write!(f, ".{patch}"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_release_is_parsed_from_uname() {
        for (text, is) in [
            ("6.8", "6.8"),
            ("v6.8.1", "6.8"),
            ("5.15.0-91-generic", "5.15"),
            ("6.18.44-fc-v595", "6.18"),
            ("2.6.32-754.el6.x86_64", "2.6.32"),
            ("2.6.32.71", "2.6.32"),
            ("6.1.", "6.1"),
        ] {
            let read = Release::parse(text).map(|r| r.to_string());
            assert_eq!(read.as_deref(), Some(is), "{text}");
        }
        for no in ["", "9", "v7r8", "late", "5.x", "1.2.3.4", "70000.1", "5..1"] {
            assert_eq!(Release::parse(no), None, "{no}");
        }
        let before = |a, b, c| Release::new(a, b, c).before().to_string();
        assert_eq!([before(5, 14, 0), before(5, 0, 0)], ["5.13", "4.20"]);
        assert_eq!([before(3, 0, 0), before(2, 6, 25)], ["2.6.39", "2.6.24"]);
        assert!(Release::new(2, 6, 33) < Release::new(3, 0, 0));
    }
}
