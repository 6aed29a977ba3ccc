//! Reads small kernel files safely. Pipes, directories, link loops, and very long or binary files
//! in their place do no harm.

use seekwell_core::foreign;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of bytes that are read. An attribute has at most one page, but mount tables are
/// longer.
const MOST: u64 = 4 << 20;
/// Maximum length of a word that is shown to users, characters.
const SHOWN: usize = 120;

/// Reads files of one directory and collects the errors.
pub struct Reader {
    dir: PathBuf,
    trouble: Vec<String>,
}

/// Returns whether an error is harmless: the file does not exist, or does not apply to this device.
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

/// Returns the bytes of a regular file, or `None` if there is nothing to read.
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

/// Returns the text of a file. Invalid bytes are replaced. The text is empty if the file cannot be
/// read.
pub fn lossy(path: &Path) -> String {
    let all = bytes(path).ok().flatten().unwrap_or_default();
    String::from_utf8_lossy(&all).into_owned()
}

/// Returns text that is safe to print on a terminal: one line of limited length, without control
/// characters.
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

/// Returns the names in a directory, sorted. The list is empty if the directory does not exist.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut all: Vec<String> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    all.sort_by(|a, b| by_number(a, b));
    all
}

/// Compares names by letters, then by the value of the number at the end. So `sda2` comes before
/// `sda10`.
pub fn by_number(a: &str, b: &str) -> std::cmp::Ordering {
    let split = |s: &str| {
        let digits = s.chars().rev().take_while(char::is_ascii_digit).count();
        let (word, number) = s.split_at(s.len() - digits);
        (word.to_owned(), number.parse::<u128>().ok())
    };
    split(a).cmp(&split(b)).then_with(|| a.cmp(b))
}

impl Reader {
    /// Returns a reader for this directory.
    pub fn new(dir: PathBuf) -> Self {
        Reader {
            dir,
            trouble: Vec::new(),
        }
    }
    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
    /// Records a file that could not be parsed.
    pub fn wrong(&mut self, name: &str, what: &str) {
        self.trouble.push(format!("{name}: {what}"));
    }
    /// Returns the text of a file with one line, or `None` if the file is missing or empty.
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
                self.wrong(name, "contains bytes that are not text");
                None
            }
        }
    }
    /// Returns a text that the vendor of the device chose, such as the model, in printable form.
    /// Returns `None` if the text is empty.
    pub fn label(&self, name: &str) -> Option<String> {
        let text = clean(&lossy(&self.dir.join(name)));
        (!text.is_empty()).then_some(text)
    }
    /// Returns the number in a file, or `None` if there is none.
    pub fn number<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        let text = self.text(name)?;
        let number = text.parse().ok();
        if number.is_none() {
            self.wrong(name, &format!("not a plausible number: \"{text}\""));
        }
        number
    }
    /// Returns the flag in a file. 0 is false, every other number is true.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        self.number::<i64>(name).map(|n| n != 0)
    }
    /// Returns all recorded errors.
    pub fn trouble(self) -> Vec<String> {
        self.trouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_with_numbers_by_value() {
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
    fn sysfs_words_are_cleaned_to_one_line() {
        assert_eq!(
            clean(" WDC  WD40\n\x1b[31mX\0 \u{9b}31m\u{202e}x"),
            "WDC WD40 \u{fffd}[31mX\u{fffd} \u{fffd}31m\u{fffd}x"
        );
        assert!(clean(&"x".repeat(10_000)).len() < 200);
    }
}
