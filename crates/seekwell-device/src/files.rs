//! The preset files of a user, which are read from the disk or given as texts.
//!
//! A run can store a specification together with the texts of its preset files. It then makes the
//! same device on any machine, even if the files were changed or deleted.

use crate::error::DeviceError;
use seekwell_files::read_text;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum size of a preset file, in bytes. A file with a long zone table has 50 KiB.
const BYTES_MAX: u64 = 1 << 20;

/// Texts of preset files, by path.
pub(crate) type Files = BTreeMap<String, String>;

thread_local! {
    /// Texts that replace files on the disk for this thread. The last entry belongs to the
    /// innermost call of [`with_files`].
    static GIVEN: RefCell<Vec<Files>> = const { RefCell::new(Vec::new()) };
    /// Files that this thread has read. `Some` only while [`recorded`] records them.
    static SEEN: RefCell<Option<Files>> = const { RefCell::new(None) };
}

/// Returns the text of a file: the given text if there is one, otherwise the contents of the file.
pub(crate) fn text(path: &str) -> Result<String, DeviceError> {
    let given = GIVEN.with_borrow(|all| all.last().and_then(|f| f.get(path).cloned()));
    let text = match given {
        Some(text) => text,
        None => {
            let read = read_text(Path::new(path), BYTES_MAX);
            read.map_err(|e| DeviceError::unread(path, &e))?
        }
    };
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.insert(path.to_owned(), text.clone());
        }
    });
    Ok(text)
}

/// Removes the texts of the innermost [`with_files`] when dropped, even if the closure panics.
struct Scope;

impl Drop for Scope {
    fn drop(&mut self) {
        GIVEN.with_borrow_mut(|all| all.pop());
    }
}

/// Runs `work`. On this thread, `files` replace the files on the disk while `work` runs.
pub fn with_files<T>(files: &Files, work: impl FnOnce() -> T) -> T {
    GIVEN.with_borrow_mut(|all| all.push(files.clone()));
    let _scope = Scope;
    work()
}

/// Returns the result of `work`, and the texts of all files that it reads on this thread, by path.
pub(crate) fn recorded<T>(work: impl FnOnce() -> T) -> (T, Files) {
    SEEN.set(Some(Files::new()));
    let result = work();
    (result, SEEN.take().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{files_of, open};

    const TEXT: &str = "kind = \"constant\"\nname = \"mine\"\nsummary = \"of a test\"\n[params]\n";

    #[test]
    fn text_replaces_a_preset_file_and_is_listed_again() {
        let array = "kind = \"controller\"\nname = \"mine\"\nsummary = \"x\"\n\
                     [params]\nof = { value = \"disk.toml\", source = \"estimate\" }\n\
                     members = { value = 2, unit = \"devices\", source = \"estimate\" }\n";
        let files = Files::from([
            ("disk.toml".to_owned(), TEXT.to_owned()),
            ("some/array.toml".to_owned(), array.to_owned()),
        ]);
        let spec = "some/array.toml,level=raid0";
        with_files(&files, || {
            assert_eq!(files_of("disk.toml,depth=3").expect("given").len(), 1);
            let device = open("disk.toml,depth=3", 1).expect("given");
            assert_eq!(device.facts().depth, 3);
            match files_of(spec) {
                Ok(found) => assert_eq!(found, files),
                Err(e) => panic!("{e}"),
            }
        });
        assert!(matches!(
            open("disk.toml", 1),
            Err(DeviceError::Read { .. })
        ));
        let panicked = std::panic::catch_unwind(|| with_files(&files, || panic!("in the middle")));
        assert!(panicked.is_err());
        assert!(matches!(
            open("disk.toml", 1),
            Err(DeviceError::Read { .. })
        ));
        assert_eq!(files_of("hdd:hitachi-7k200").expect("embedded").len(), 0);
    }
}
