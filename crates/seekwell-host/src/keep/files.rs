//! Files written so that all of it can be taken away again, byte for byte.
//!
//! Before the first file a note of what is to be written, what was there before and which
//! directories are new is on the medium; each file then appears whole under its name. Undone are
//! only files that still hold what was written: what somebody has changed since is his.

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

/// Why nothing was written, or taken away.
#[derive(Debug, Error)]
pub enum FilesError {
    /// A file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else's.
    #[error(
        "{}: is there already, and seekwell did not write it: look at it, and remove it or keep \
         the choice in another way", .0.display()
    )]
    Foreign(PathBuf),
    /// A file that would be followed elsewhere.
    #[error("{}: is not a plain file: look at it and remove it", .0.display())]
    NotPlain(PathBuf),
    /// No longer ours.
    #[error(
        "{}: was changed since seekwell wrote it, and is left as it is: remove what you do not \
         want of it, or put back what was written and try again", .0.display()
    )]
    Changed(PathBuf),
    /// Another user's, or others could have written it.
    #[error(
        "{}: belongs to another user, or others may write to it, so nothing is done by its word: look \
         at it, and remove it or make it its owner's alone (chown, chmod go-w)", .0.display()
    )]
    Untrusted(PathBuf),
    /// Nothing to take away.
    #[error("nothing that seekwell wrote for {0} is there")]
    Nothing(String),
    /// Not a note of ours.
    #[error("{}: cannot be understood; look at it, and remove it if it is of no use", .0.display())]
    Note(PathBuf),
}

/// A file of a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Written {
    path: PathBuf,
    text: String,
    /// What it held before; absent: it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Its mode before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
}

/// What was done for one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    schema: u32,
    /// The device's name then.
    pub device: String,
    /// What it was known by then: keys and values as udev has them.
    identity: Vec<(String, String)>,
    /// Its number of this attachment, in this boot.
    diskseq: Option<u64>,
    boot_id: String,
    /// Set.
    pub scheduler: String,
    /// The settings before; none if only files were written.
    pub before: Option<Settings>,
    files: Vec<Written>,
    /// Directories that were made, the outermost first.
    made: Vec<PathBuf>,
    /// Commands for root once it is undone.
    after_undo: Vec<String>,
    /// Everything was written, and what is in force set: until then a cut undoes it.
    #[serde(default = "yes")]
    done: bool,
}

/// Notes of before there was such a word were of what had been done.
fn yes() -> bool {
    true
}

impl Note {
    /// Files that were written.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|f| f.path.as_path())
    }
}

/// What became of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Files removed, or put back as they were.
    pub files: Vec<PathBuf>,
    /// The settings to put back now, if they are still those of that boot and device.
    pub before: Option<Settings>,
    /// Commands for root.
    pub after: Vec<String>,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FilesError + '_ {
    move |source| FilesError::File {
        path: path.to_owned(),
        source,
    }
}

/// The name of a device's note: by what survives a boot, where there is such a thing.
fn note_name(d: &Device) -> String {
    let known = d.identity.first().map(|i| i.1.as_str());
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let all: String = known.unwrap_or(&d.name).chars().map(plain).collect();
    let skip = all.len().saturating_sub(80);
    format!("{}.json", &all[skip..])
}

/// Is the directory of notes, and the one above it, this user's alone? Absent ones are.
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

/// A note as it is, or why it is not believed, and its file.
type Found = (PathBuf, Result<Note, FilesError>);

/// All notes, by name.
fn notes(tree: &Tree) -> Result<Vec<Found>, FilesError> {
    trusted(tree)?;
    let all = crate::block::names(&tree.at(NOTES)).into_iter();
    let all = all.filter(|n| n.ends_with(".json") && !n.starts_with('.'));
    let all = all.map(|n| tree.at(NOTES).join(n));
    Ok(all
        .filter_map(|path| Some((path.clone(), load(&path).transpose()?)))
        .collect())
}

/// The note about a device: by what it is; if it is not there, by the name it had.
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

fn boot(tree: &Tree) -> String {
    let id = fs::read_to_string(tree.at("/proc/sys/kernel/random/boot_id"));
    id.unwrap_or_default().trim().to_owned()
}

/// Missing directories above a path, the outermost first, as paths of the tree.
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

/// A plain file's text and mode; `None`: it is not there.
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

/// A note; `None`: it is not there any more. One that others could have written is not believed, and
/// neither is one about files that are not of our kind.
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

/// Makes directories, for their owner to write.
fn make(tree: &Tree, dir: &Path) -> Result<(), FilesError> {
    let at = tree.at(dir);
    let mut how = DirBuilder::new();
    let made = how.mode(0o755).recursive(true).create(&at);
    made.map_err(failed(&at))
}

/// A file as it was before: gone, or with its old content.
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

/// Has somebody changed a file since it was written? It may be gone, or as it was before: a kill came
/// in between.
fn unchanged(tree: &Tree, f: &Written) -> Result<(), FilesError> {
    match plain(&tree.at(&f.path))? {
        Some((text, _)) if text != f.text && f.before.as_ref() != Some(&text) => {
            Err(FilesError::Changed(f.path.clone()))
        }
        _ => Ok(()),
    }
}

/// What was written for a device before, if anything was.
///
/// # Errors
/// The note cannot be read.
pub fn noted(tree: &Tree, d: &Device) -> Result<Option<Note>, FilesError> {
    Ok(find(tree, &d.name, Some(d))?.map(|found| found.1))
}

/// Whether files could be written: nothing of somebody else is in their place.
///
/// # Errors
/// What stands in the way.
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

/// Writes files for a device and notes it down. What an earlier call noted is kept as what was
/// before: undoing leads to the beginning. Until [`confirm`] is called it counts as cut short.
///
/// # Errors
/// What stands in the way; then nothing is left but what a note tells how to undo.
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
        boot_id: boot(tree),
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
    // A file of the same kind under an earlier name gives way to the new one.
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
    // The note comes before everything that it tells of.
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

/// What [`write()`] wrote is to stay.
///
/// # Errors
/// The note cannot be written.
pub fn confirm(tree: &Tree, d: &Device) -> Result<(), FilesError> {
    let found = find(tree, &d.name, Some(d))?;
    let (path, mut note) = found.ok_or_else(|| FilesError::Nothing(d.name.clone()))?;
    note.done = true;
    keep(&path, &note)
}

/// Devices, as they were called, for which a kill or a power cut came between the first file and
/// the last: to be undone. And what stands in the way of knowing.
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

/// Takes away what was written for a device. With a file that somebody has changed since, nothing
/// is done.
///
/// # Errors
/// There is nothing, or it is not ours any more.
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
    if same && note.boot_id == boot(tree) {
        undone.before.clone_from(&note.before);
    }
    fs::remove_file(&path).map_err(failed(&path))?;
    // The innermost first; what others have put into one stays, and it with them.
    for dir in note.made.iter().rev() {
        let _ = fs::remove_dir(tree.at(dir));
    }
    Ok(undone)
}
