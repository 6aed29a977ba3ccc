//! Writes files that can be undone completely, so that the earlier state is restored byte for byte.
//!
//! A note is written to the medium before the first file. It lists the new files, the previous
//! contents of existing files, and the new directories. Then each file is written atomically. An
//! undo changes only files that still have the written content. A file that somebody has changed
//! since then is kept.

use super::Kept;
pub use super::early::sweep;
use super::early::{NOTES, is_of_ours, put};
use crate::block::{Device, Tree};
use crate::place::ours;
use crate::switch::settings::Settings;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reasons why no file was written or removed.
#[derive(Debug, Error)]
pub enum FilesError {
    /// Access to a file failed.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file exists, and Seekwell did not write it.
    #[error(
        "{}: exists already, and seekwell did not write it: check it, and remove it or make the \
         scheduler permanent in another way", .0.display()
    )]
    Foreign(PathBuf),
    /// The path is a symbolic link or another special file.
    #[error("{}: is not a plain file: check it and remove it", .0.display())]
    NotPlain(PathBuf),
    /// Somebody has changed the file since Seekwell wrote it.
    #[error(
        "{}: was changed since seekwell wrote it, and is not touched: edit it, or restore the \
         written text and try again", .0.display()
    )]
    Changed(PathBuf),
    /// The note belongs to another user, or other users could have written it.
    #[error(
        "{}: belongs to another user, or others may write to it, so it is not trusted: check it, \
         and remove it or restrict it to its owner (chown, chmod go-w)", .0.display()
    )]
    Untrusted(PathBuf),
    /// There is nothing to undo for this device.
    #[error("there are no files that seekwell wrote for {0}")]
    Nothing(String),
    /// The file is not a valid note.
    #[error("{}: is not a valid record of `seekwell apply`; check the file, and remove it if you \
             do not need it", .0.display())]
    Note(PathBuf),
}

/// A file that was written, as recorded in a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    path: PathBuf,
    text: String,
    /// Previous content of the file. It is absent if the file did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Previous mode of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
}

/// A record of the files and settings that were written for a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    schema: u32,
    /// Name of the device when the note was written.
    pub device: String,
    /// Identity of the device when the note was written: keys and values of udev.
    identity: Vec<(String, String)>,
    /// Sequence number of the device when the note was written. It is valid only for the boot
    /// `boot_id`.
    diskseq: Option<u64>,
    boot_id: String,
    /// The scheduler that was set.
    pub scheduler: String,
    /// The previous settings. `None` if only files were written.
    pub before: Option<Settings>,
    files: Vec<Written>,
    /// Directories that were created. The outermost directory comes first.
    made: Vec<PathBuf>,
    /// Commands that root should run after an undo.
    after_undo: Vec<String>,
    /// Whether all files were written and the settings set. If false, the change was interrupted
    /// and must be undone.
    #[serde(default = "yes")]
    done: bool,
}

/// Notes of older versions do not have this field. They describe complete changes.
fn yes() -> bool {
    true
}

impl Note {
    /// Returns the paths of the written files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|f| f.path.as_path())
    }
}

/// Result of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Files that were removed or restored.
    pub files: Vec<PathBuf>,
    /// The settings that must be restored. `None` if the note is from another boot or device.
    pub before: Option<Settings>,
    /// Commands that root should run after the undo.
    pub after: Vec<String>,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FilesError + '_ {
    move |source| FilesError::File {
        path: path.to_owned(),
        source,
    }
}

/// Returns the name of a device's note. It is derived from the persistent identity of the device,
/// if there is one.
fn note_name(d: &Device) -> String {
    let known = d.identity.first().map(|i| i.1.as_str());
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let all: String = known.unwrap_or(&d.name).chars().map(plain).collect();
    let skip = all.len().saturating_sub(80);
    format!("{}.json", &all[skip..])
}

/// Checks that only this user can write the directory of notes and its parent. Missing directories
/// are accepted.
fn trusted(tree: &Tree) -> Result<(), FilesError> {
    for dir in Path::new(NOTES).ancestors().take(2).map(|d| tree.at(d)) {
        match fs::symlink_metadata(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(&dir)(e)),
            Ok(m) if m.is_dir() && ours(&m) => {}
            Ok(_) => return Err(FilesError::Untrusted(dir)),
        }
    }
    Ok(())
}

/// The path of a note, with the note or the reason why it is not trusted.
type Found = (PathBuf, Result<Note, FilesError>);

/// Returns all notes, sorted by name.
fn notes(tree: &Tree) -> Result<Vec<Found>, FilesError> {
    trusted(tree)?;
    let all = crate::block::names(&tree.at(NOTES)).into_iter();
    let all = all.filter(|n| n.ends_with(".json") && !n.starts_with('.'));
    let all = all.map(|n| tree.at(NOTES).join(n));
    Ok(all
        .filter_map(|path| Some((path.clone(), load(&path).transpose()?)))
        .collect())
}

/// Finds the note of a device by its identity. If the device is absent, the note is found by the
/// name that the device had.
fn find(
    tree: &Tree,
    name: &str,
    now: Option<&Device>,
) -> Result<Option<(PathBuf, Note)>, FilesError> {
    for (path, note) in notes(tree)? {
        let note = note?;
        let about = match now {
            Some(d) if note.identity.is_empty() && d.identity.is_empty() => note.device == d.name,
            Some(d) => d.identity.iter().any(|i| note.identity.contains(i)),
            None => note.device == name,
        };
        if about {
            return Ok(Some((path, note)));
        }
    }
    Ok(None)
}

/// Returns the missing parent directories of a path, as paths of the tree. The outermost directory
/// comes first.
fn missing(tree: &Tree, path: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .take_while(|p| !tree.at(p).exists())
        .map(Path::to_owned)
        .collect();
    all.reverse();
    all
}

/// Returns the text and the mode of a regular file, or `None` if it does not exist.
fn plain(path: &Path) -> Result<Option<(String, u32)>, FilesError> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed(path)(e)),
        Ok(m) if !m.is_file() => Err(FilesError::NotPlain(path.to_owned())),
        Ok(m) => {
            let text = fs::read_to_string(path).map_err(failed(path))?;
            Ok(Some((text, m.mode() & 0o777)))
        }
    }
}

/// Loads a note, or returns `None` if it does not exist. Rejects a note that other users could have
/// written, and a note about files that Seekwell does not write.
fn load(path: &Path) -> Result<Option<Note>, FilesError> {
    let mut how = OpenOptions::new();
    how.read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let mut file = match how.open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => {
            return Err(FilesError::NotPlain(path.to_owned()));
        }
        opened => opened.map_err(failed(path))?,
    };
    let meta = file.metadata().map_err(failed(path))?;
    if !meta.is_file() {
        return Err(FilesError::NotPlain(path.to_owned()));
    }
    if !ours(&meta) {
        return Err(FilesError::Untrusted(path.to_owned()));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed(path))?;
    let note: Option<Note> = serde_json::from_str(&text).ok();
    let safe = |n: &Note| {
        let inside = |p: &Path| {
            let dots = p.components().any(|c| c.as_os_str() == "..");
            p.is_absolute() && !dots
        };
        let file = |f: &Written| inside(&f.path) && is_of_ours(&f.path);
        n.schema == 1 && n.files.iter().all(file) && n.made.iter().all(|p| inside(p))
    };
    match note {
        Some(n) if safe(&n) => Ok(Some(n)),
        _ => Err(FilesError::Note(path.to_owned())),
    }
}

/// Writes a note.
fn keep(path: &Path, note: &Note) -> Result<(), FilesError> {
    let text = serde_json::to_string_pretty(note).unwrap_or_default();
    put(path, &format!("{text}\n"), 0o600).map_err(failed(path))
}

/// Creates directories that only their owner can write.
fn make(tree: &Tree, dir: &Path) -> Result<(), FilesError> {
    let at = tree.at(dir);
    let mut how = DirBuilder::new();
    let made = how.mode(0o755).recursive(true).create(&at);
    made.map_err(failed(&at))
}

/// Restores the earlier state of a file: restores its content, or removes the file if it did not
/// exist.
fn take_away(tree: &Tree, f: &Written) -> Result<(), FilesError> {
    let at = tree.at(&f.path);
    match &f.before {
        Some(text) => put(&at, text, f.mode.unwrap_or(0o644)).map_err(failed(&at)),
        None => match fs::remove_file(&at) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(&at)(e)),
            _ => Ok(()),
        },
    }
}

/// Checks that nobody has changed a file since Seekwell wrote it. After a kill, the file may also
/// be missing or have its earlier content.
fn unchanged(tree: &Tree, f: &Written) -> Result<(), FilesError> {
    match plain(&tree.at(&f.path))? {
        Some((text, _)) if text != f.text && f.before.as_ref() != Some(&text) => {
            Err(FilesError::Changed(f.path.clone()))
        }
        _ => Ok(()),
    }
}

/// Returns the note of an earlier change of a device, if there is one.
///
/// # Errors
/// The note cannot be read.
pub fn noted(tree: &Tree, d: &Device) -> Result<Option<Note>, FilesError> {
    Ok(find(tree, &d.name, Some(d))?.map(|found| found.1))
}

/// Checks that files can be written, because no file of somebody else has the same path.
///
/// # Errors
/// Returns what prevents the files from being written.
pub fn check(tree: &Tree, d: &Device, files: &[Kept]) -> Result<(), FilesError> {
    let note = noted(tree, d)?;
    let ours = |p: &Path| note.iter().flat_map(|n| &n.files).any(|f| f.path == p);
    for k in files {
        let at = tree.at(&k.path);
        if plain(&at)?.is_some() && !ours(&k.path) {
            return Err(FilesError::Foreign(k.path.clone()));
        }
    }
    Ok(())
}

/// Writes files and a note for a device. If there is an earlier note, its previous contents are
/// kept, so that an undo restores the original state. Until [`confirm`] is called, the change
/// counts as interrupted.
///
/// # Errors
/// Returns what prevented the change. The note can then undo everything that was changed.
pub fn write(
    tree: &Tree,
    d: &Device,
    scheduler: &str,
    before: Option<&Settings>,
    files: &[Kept],
) -> Result<(), FilesError> {
    check(tree, d, files)?;
    let (path, old) = match find(tree, &d.name, Some(d))? {
        Some((path, old)) => (path, Some(old)),
        None => (tree.at(NOTES).join(note_name(d)), None),
    };
    let mut note = Note {
        schema: 1,
        device: d.name.clone(),
        identity: d.identity.clone(),
        diskseq: d.diskseq,
        boot_id: tree.boot_id(),
        scheduler: scheduler.to_owned(),
        before: before.cloned(),
        files: Vec::new(),
        made: Vec::new(),
        after_undo: Vec::new(),
        done: false,
    };
    if let Some(old) = old {
        let same = old.boot_id == note.boot_id && old.diskseq == note.diskseq;
        if same && old.before.is_some() {
            note.before = old.before;
        }
        (note.files, note.made) = (old.files, old.made);
        note.after_undo = old.after_undo;
    }
    // The new file replaces a file of the same kind that has an earlier name.
    let same_kind = |f: &Written, k: &Kept| f.path.parent() == k.path.parent();
    let stale: Vec<Written> = note
        .files
        .iter()
        .filter(|f| files.iter().any(|k| same_kind(f, k)))
        .filter(|f| files.iter().all(|k| k.path != f.path))
        .cloned()
        .collect();
    stale.iter().try_for_each(|f| unchanged(tree, f))?;
    let own = missing(tree, &Path::new(NOTES).join("x"));
    let mut dirs = own.clone();
    for k in files {
        for dir in missing(tree, &k.path) {
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        let now = plain(&tree.at(&k.path))?;
        match note.files.iter_mut().find(|f| f.path == k.path) {
            Some(f) => f.text.clone_from(&k.text),
            None => note.files.push(Written {
                path: k.path.clone(),
                text: k.text.clone(),
                mode: now.as_ref().map(|n| n.1),
                before: now.map(|n| n.0),
            }),
        }
        for c in &k.after_undo {
            if !note.after_undo.contains(c) {
                note.after_undo.push(c.clone());
            }
        }
    }
    for dir in &dirs {
        if !note.made.contains(dir) {
            note.made.push(dir.clone());
        }
    }
    // The note is written before all changes that it lists.
    make(tree, Path::new(NOTES))?;
    keep(&path, &note)?;
    for dir in &dirs[own.len()..] {
        make(tree, dir)?;
    }
    for k in files {
        let at = tree.at(&k.path);
        put(&at, &k.text, 0o644).map_err(failed(&at))?;
    }
    if !stale.is_empty() {
        stale.iter().try_for_each(|f| take_away(tree, f))?;
        note.files.retain(|f| !stale.contains(f));
        keep(&path, &note)?;
    }
    Ok(())
}

/// Marks the change of [`write()`] as complete.
///
/// # Errors
/// The note cannot be written.
pub fn confirm(tree: &Tree, d: &Device) -> Result<(), FilesError> {
    let found = find(tree, &d.name, Some(d))?;
    let (path, mut note) = found.ok_or_else(|| FilesError::Nothing(d.name.clone()))?;
    note.done = true;
    keep(&path, &note)
}

/// Returns the devices whose change was interrupted by a kill or a power failure and must be
/// undone, by the names in the notes. The second value contains the errors of reading notes.
pub fn cut_short(tree: &Tree) -> (Vec<String>, Vec<FilesError>) {
    let (mut devices, mut errors) = (Vec::new(), Vec::new());
    match notes(tree) {
        Err(e) => errors.push(e),
        Ok(all) => {
            for (_, note) in all {
                match note {
                    Ok(n) if n.done => {}
                    Ok(n) => devices.push(n.device),
                    Err(e) => errors.push(e),
                }
            }
        }
    }
    devices.sort();
    (devices, errors)
}

/// Restores the files of a device. If somebody has changed one of the files, nothing is done.
///
/// # Errors
/// There is nothing to undo, or a file was changed.
pub fn undo(tree: &Tree, device: &str, now: Option<&Device>) -> Result<Undone, FilesError> {
    let found = find(tree, device, now)?;
    let (path, note) = found.ok_or_else(|| FilesError::Nothing(device.to_owned()))?;
    note.files.iter().try_for_each(|f| unchanged(tree, f))?;
    let mut undone = Undone {
        after: note.after_undo.clone(),
        ..Undone::default()
    };
    for f in &note.files {
        take_away(tree, f)?;
        undone.files.push(f.path.clone());
    }
    let same = now.is_some_and(|d| d.diskseq == note.diskseq && d.identity == note.identity);
    if same && note.boot_id == tree.boot_id() {
        undone.before.clone_from(&note.before);
    }
    fs::remove_file(&path).map_err(failed(&path))?;
    // The innermost directory is removed first. A directory with other contents is kept.
    for dir in note.made.iter().rev() {
        let _ = fs::remove_dir(tree.at(dir));
    }
    Ok(undone)
}
