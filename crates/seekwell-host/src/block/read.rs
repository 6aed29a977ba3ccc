//! Safe reads of small kernel files. Neither their contents nor objects in their place do harm: a
//! pipe, a directory, a link loop, megabytes, binary data.

use seekwell_core::foreign;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of bytes read: an attribute is a page at most, but mount tables are longer.
const MOST: u64 = 4 << 20;
/// Maximum length of a word shown to users, characters.
const SHOWN: usize = 120;

/// Reads files of one directory and collects the errors.
pub struct Reader {
    dir: PathBuf,
    trouble: Vec<String>,
}

/// A missing file, or one that does not apply to this device, is not an error.
fn harmless(e: &std::io::Error) -> bool {
    let none = [
        libc::ENOENT,
        libc::ENOTDIR,
        libc::EINVAL,
        libc::ENODEV,
        libc::ENXIO,
        libc::EOPNOTSUPP,
        libc::EACCES,
        libc::EPERM,
    ];
    e.raw_os_error().is_some_and(|n| none.contains(&n))
}

/// The bytes of a plain file; `None` if there is nothing to read.
pub fn bytes(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let mut how = OpenOptions::new();
    how.read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC);
    let read = || {
        let file = how.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("not a plain file"));
        }
        let mut all = Vec::new();
        file.take(MOST).read_to_end(&mut all)?;
        Ok(all)
    };
    match read() {
        Ok(all) => Ok(Some(all)),
        Err(e) if harmless(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The text of a file with invalid bytes replaced; empty if there is none.
pub fn lossy(path: &Path) -> String {
    let all = bytes(path).ok().flatten().unwrap_or_default();
    String::from_utf8_lossy(&all).into_owned()
}

/// Text that is safe to show: one line, no control characters for a terminal, limited length.
pub fn clean(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(&foreign::plain(word));
    }
    if words.chars().count() > SHOWN {
        words = words.chars().take(SHOWN).collect();
        words.push_str("...");
    }
    words
}

/// Names in a directory, sorted; empty if it does not exist.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut all: Vec<String> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    all.sort_by(|a, b| by_number(a, b));
    all
}

/// `sda2` before `sda10`, `loop2` before `loop10`: letters, then numbers by value.
pub fn by_number(a: &str, b: &str) -> std::cmp::Ordering {
    let split = |s: &str| {
        let digits = s.chars().rev().take_while(char::is_ascii_digit).count();
        let (word, number) = s.split_at(s.len() - digits);
        (word.to_owned(), number.parse::<u128>().ok())
    };
    split(a).cmp(&split(b)).then_with(|| a.cmp(b))
}

impl Reader {
    /// A reader for this directory.
    pub fn new(dir: PathBuf) -> Self {
        Reader {
            dir,
            trouble: Vec::new(),
        }
    }
    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// Records a file that could not be parsed.
    pub fn wrong(&mut self, name: &str, what: &str) {
        self.trouble.push(format!("{name}: {what}"));
    }
    /// A line of text; `None` if the file is missing or empty.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let all = match bytes(&self.dir.join(name)) {
            Ok(all) => all?,
            Err(e) => {
                self.wrong(name, &e.to_string());
                return None;
            }
        };
        match std::str::from_utf8(&all) {
            Ok(text) if !text.contains(|c: char| c.is_control() && !c.is_whitespace()) => {
                let text = clean(text);
                (!text.is_empty()).then_some(text)
            }
            _ => {
                self.wrong(name, "holds bytes that are no text");
                None
            }
        }
    }
    /// A vendor's text in the device, as far as it is printable.
    pub fn label(&self, name: &str) -> Option<String> {
        let text = clean(&lossy(&self.dir.join(name)));
        (!text.is_empty()).then_some(text)
    }
    /// A number.
    pub fn number<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        let text = self.text(name)?;
        let number = text.parse().ok();
        if number.is_none() {
            self.wrong(name, &format!("not a number that could be meant: `{text}`"));
        }
        number
    }
    /// A flag: 0 or another number.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        self.number::<i64>(name).map(|n| n != 0)
    }
    /// All recorded errors.
    pub fn trouble(self) -> Vec<String> {
        self.trouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_people_count() {
        let mut all = vec![
            "sda10",
            "sda2",
            "loop1",
            "sdb",
            "sda",
            "x99999999999999999999",
        ];
        all.sort_by(|a, b| by_number(a, b));
        assert_eq!(
            all,
            [
                "loop1",
                "sda",
                "sda2",
                "sda10",
                "sdb",
                "x99999999999999999999"
            ]
        );
    }

    #[test]
    fn words_are_shown_in_one_line_without_control_characters() {
        assert_eq!(
            clean(" WDC  WD40\n\x1b[31mX\0 \u{9b}31m\u{202e}x"),
            "WDC WD40 \u{fffd}[31mX\u{fffd} \u{fffd}31m\u{fffd}x"
        );
        assert!(clean(&"x".repeat(10_000)).len() < 200);
    }
}
