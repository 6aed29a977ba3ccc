//! Finds the leftovers of runs that were ended by a kill or a power failure: unfinished
//! experiments, programs, control groups and tracefs instances. The settings of devices are handled
//! in [`crate::switch::journal`].
//!
//! An experiment that sets schedulers writes a note, which is a small JSON file. The file is in a
//! directory that is kept across a reboot. The process of the experiment locks the note until the
//! process ends. A note that no process has locked belongs to an interrupted experiment. It
//! contains the name of the experiment and the command that continues it, but not the cause of the
//! interruption.

use crate::block::Tree;
use crate::place::{self, ours};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Environment variable that replaces the directory `/var/lib/seekwell`.
pub const VARIABLE: &str = "SEEKWELL_STATE_DIR";
const DEFAULT: &str = "/var/lib/seekwell";
/// Prefix of the names that Seekwell creates. The process ID follows the prefix.
pub(crate) const PREFIX: &str = "seekwell-";

/// An experiment that is running or was interrupted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Name of the experiment.
    pub experiment: String,
    /// Directory in which the programs of the experiment write.
    pub dir: PathBuf,
    /// Directory of the results. It is empty before the first run that counts.
    pub results: PathBuf,
    /// Command that continues the experiment.
    pub again: String,
    /// Mount point of the file system of `dir`. It is empty if unknown.
    #[serde(default)]
    pub mount: PathBuf,
}

/// Contents of a note.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    schema: u32,
    boot_id: String,
    pid: u32,
    #[serde(flatten)]
    about: About,
}

/// The directory of the notes about experiments.
#[derive(Clone, Debug)]
pub struct Notes {
    dir: PathBuf,
}

/// The note of a running experiment. Dropping this value removes the file.
#[derive(Debug)]
pub struct Note {
    path: PathBuf,
    /// Directory in which the programs of the experiment write.
    dir: PathBuf,
    _file: File,
}

/// The note of an interrupted experiment: its process has ended.
#[derive(Debug)]
pub struct Dead {
    /// The experiment.
    pub about: About,
    /// Whether the machine was booted after the note was written.
    pub booted: bool,
    /// ID of the process that wrote the note.
    pub pid: u32,
    note: Note,
}

impl Notes {
    /// Returns the directory of notes of this machine, or of a directory tree with copies of the
    /// files of another machine.
    pub fn new(tree: &Tree) -> Self {
        let told = std::env::var_os(VARIABLE).filter(|d| !d.is_empty() && tree.is_live());
        let state = told.map_or_else(|| tree.at(DEFAULT), PathBuf::from);
        Notes {
            dir: state.join("runs"),
        }
    }

    /// Writes a note. Must be called before the experiment creates anything. Replaces the note of
    /// an earlier run of the same experiment.
    ///
    /// # Errors
    /// The directory cannot be created or written.
    pub fn begin(&self, tree: &Tree, about: &About) -> io::Result<Note> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        self.replace_old(tree, about);
        let mut how = DirBuilder::new();
        how.mode(0o755).recursive(true).create(&self.dir)?;
        if !ours(&fs::symlink_metadata(&self.dir)?) {
            return Err(io::Error::other("others could write there"));
        }
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("{}-{n}.json", std::process::id()));
        Ok(Note {
            _file: self.write(tree, &path, about)?,
            dir: about.dir.clone(),
            path,
        })
    }

    /// Updates a note.
    ///
    /// # Errors
    /// The note cannot be written. In this case the previous version of the note is kept.
    pub fn change(&self, tree: &Tree, note: &mut Note, about: &About) -> io::Result<()> {
        self.replace_old(tree, about);
        note._file = self.write(tree, &note.path, about)?;
        note.dir.clone_from(&about.dir);
        Ok(())
    }

    /// Removes the directories and the note of an earlier run with the same results.
    fn replace_old(&self, tree: &Tree, about: &About) {
        for old in self.dead(tree) {
            let same = old.about.results == about.results && about.results != Path::new("");
            let gone = same
                && place::remove_leftovers(&old.about.dir).is_ok_and(|(_, left)| left.is_empty());
            match gone {
                true => old.forget(),
                // The note of another experiment is kept until it has been reported.
                false => old.leave(),
            }
        }
    }

    fn write(&self, tree: &Tree, path: &Path, about: &About) -> io::Result<File> {
        let early = path.with_extension("new");
        let entry = Entry {
            schema: 1,
            boot_id: tree.boot_id(),
            pid: std::process::id(),
            about: about.clone(),
        };
        let mut how = OpenOptions::new();
        how.write(true).create(true).truncate(true).mode(0o600);
        let mut file = how.custom_flags(libc::O_NOFOLLOW).open(&early)?;
        // The note is locked under a temporary name and then renamed. So another process never
        // finds it unlocked, and does not treat this run as interrupted.
        file.try_lock().map_err(io::Error::from)?;
        file.write_all(serde_json::to_string(&entry)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&early, path)?;
        File::open(&self.dir)?.sync_all()?;
        Ok(file)
    }

    /// Returns the interrupted experiments, sorted by the names of their notes. Removes incomplete
    /// notes.
    pub fn dead(&self, tree: &Tree) -> Vec<Dead> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        paths.sort();
        paths.iter().filter_map(|p| read_note(tree, p)).collect()
    }

    /// Removes the directory if it is empty.
    pub fn tidy(&self) {
        let _ = fs::remove_dir(&self.dir);
    }
}

fn read_note(tree: &Tree, path: &Path) -> Option<Dead> {
    let mut how = OpenOptions::new();
    how.read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = how.open(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || !ours(&meta) || file.try_lock().is_err() {
        return None;
    }
    let note = Note {
        path: path.to_owned(),
        dir: PathBuf::new(),
        _file: file,
    };
    if path.extension().is_some_and(|x| x == "new") {
        drop(note);
        return None;
    }
    let entry: Option<Entry> = serde_json::from_reader(&note._file).ok();
    match entry.filter(|e| e.schema == 1) {
        Some(e) => Some(Dead {
            booted: e.boot_id != tree.boot_id(),
            about: e.about,
            pid: e.pid,
            note,
        }),
        // A note of a newer version or of another program is kept.
        None => {
            note.leave();
            None
        }
    }
}

impl Note {
    /// Ends the experiment and removes its note. Returns the directories of this process that still
    /// exist in the experiment's directory. If there are any, the note is kept, so that a later
    /// cleanup finds them.
    pub fn end(self) -> Vec<PathBuf> {
        let left = place::of_process(&self.dir, std::process::id());
        // If the experiment's directory cannot be read, it may still contain directories of this
        // process.
        let left = left.unwrap_or_else(|_| vec![self.dir.clone()]);
        if !left.is_empty() {
            self.leave();
        }
        left
    }
    /// Unlocks the note without removing it.
    fn leave(mut self) {
        self.path = PathBuf::new();
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if self.path != Path::new("") {
            let _ = fs::remove_file(&self.path);
            // The directory is removed after its last note.
            let _ = self.path.parent().map(fs::remove_dir);
        }
    }
}

impl Dead {
    /// Removes the note. Call it after the note was reported.
    pub fn forget(self) {
        drop(self.note);
    }
    /// Keeps the note, so that [`Notes::dead`] returns it again.
    pub fn leave(self) {
        self.note.leave();
    }
}

/// Returns whether the name `seekwell-PID-N` contains the ID of a process that has ended.
pub(crate) fn of_a_dead_one(prefix: &str, name: &str) -> bool {
    let pid = name.strip_prefix(prefix).and_then(|n| n.split('-').next());
    pid.and_then(|p| p.parse::<u32>().ok())
        .is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

/// Removes control groups and tracefs instances that processes of Seekwell created and that are not
/// in use. The processes must have ended. Returns the paths of the removed directories.
pub fn debris() -> Vec<PathBuf> {
    let places = [
        "/sys/fs/cgroup/blkio",
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/kernel/tracing/instances",
    ];
    let mut gone = Vec::new();
    for place in places {
        for e in fs::read_dir(place).into_iter().flatten().flatten() {
            let dead = of_a_dead_one(PREFIX, &e.file_name().to_string_lossy());
            // Of nested groups, the inner groups are removed first.
            let inner = fs::read_dir(e.path()).into_iter().flatten().flatten();
            if dead {
                for i in inner.filter(|i| i.file_type().is_ok_and(|t| t.is_dir())) {
                    let _ = fs::remove_dir(i.path());
                }
                if fs::remove_dir(e.path()).is_ok() {
                    gone.push(e.path());
                }
            }
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Scratch;

    fn about(results: &str) -> About {
        About {
            experiment: "live".to_owned(),
            dir: "/srv".into(),
            results: results.into(),
            again: "seekwell compare".to_owned(),
            mount: PathBuf::new(),
        }
    }

    #[test]
    fn note_exists_during_a_run_and_after_a_kill() {
        let t = Scratch::new(&std::env::temp_dir(), "notes").expect("made");
        let tree = Tree::below(t.path());
        let notes = Notes::new(&tree);
        assert!(notes.dead(&tree).is_empty());
        let note = notes.begin(&tree, &about("a")).expect("written");
        assert!(notes.dead(&tree).is_empty(), "it lives");
        drop(note);
        assert!(!notes.dir.exists(), "an orderly end leaves nothing");
        // Simulates kill -9: the file exists, and no process holds its lock.
        let kill = |results: &str| {
            notes
                .begin(&tree, &about(results))
                .expect("written")
                .leave()
        };
        kill("a");
        kill("b");
        fs::write(notes.dir.join("1-0.new"), "{").expect("half a note");
        fs::write(notes.dir.join("2-0.json"), "{\"schema\": 9}").expect("a newer one");
        let dead = notes.dead(&tree);
        assert_eq!(dead.len(), 2, "{dead:?}");
        assert!(notes.dead(&tree).is_empty(), "one finder at a time");
        let first = dead.into_iter().next().expect("two");
        assert_eq!(
            (first.about.experiment.as_str(), first.booted),
            ("live", false)
        );
        first.leave();
        // Dropping the other note removes it. The note of a newer version is kept.
        assert_eq!(notes.dead(&tree).len(), 1);
        assert!(!notes.dir.join("1-0.new").exists() && notes.dir.join("2-0.json").exists());
    }

    #[test]
    fn repeated_experiment_replaces_its_old_note() {
        let t = Scratch::new(&std::env::temp_dir(), "notes").expect("made");
        let tree = Tree::below(t.path());
        let notes = Notes::new(&tree);
        let begin = || notes.begin(&tree, &about("a")).expect("written");
        begin().leave();
        begin().leave();
        let id = tree.at("/proc/sys/kernel/random/boot_id");
        fs::create_dir_all(id.parent().expect("a parent")).expect("made");
        fs::write(id, "another\n").expect("written");
        let dead = notes.dead(&tree);
        assert_eq!(dead.len(), 1);
        assert!(dead[0].booted);
    }

    /// Before the first run that counts, a note has no directory of results. A new note does not
    /// replace an earlier note without such a directory.
    #[test]
    fn note_is_updated_with_the_results_directory() {
        let t = Scratch::new(&std::env::temp_dir(), "notes").expect("made");
        let tree = Tree::below(t.path());
        let notes = Notes::new(&tree);
        notes.begin(&tree, &about("")).expect("written").leave();
        let mut note = notes.begin(&tree, &about("")).expect("written");
        assert_eq!(notes.dead(&tree).len(), 1, "the first one waits to be told");
        notes
            .change(&tree, &mut note, &about("a"))
            .expect("written");
        assert!(notes.dead(&tree).is_empty(), "told above; this one lives");
        note.leave();
        let dead = notes.dead(&tree);
        let results: Vec<&Path> = dead.iter().map(|d| d.about.results.as_path()).collect();
        assert_eq!(results, [Path::new("a")]);
    }

    #[test]
    fn remaining_directories_keep_the_note() {
        let t = Scratch::new(&std::env::temp_dir(), "notes").expect("made");
        let tree = Tree::below(t.path());
        let notes = Notes::new(&tree);
        let work = t.path().join("work");
        fs::create_dir(&work).expect("made");
        let about = About {
            dir: work.clone(),
            ..about("a")
        };
        let own = work.join(format!("seekwell-cmd-{}-7", std::process::id()));
        fs::create_dir(&own).expect("made");
        assert_eq!(
            notes.begin(&tree, &about).expect("written").end(),
            std::slice::from_ref(&own)
        );
        assert_eq!(notes.dead(&tree).len(), 1);
        fs::remove_dir(&own).expect("ours");
        assert!(
            notes
                .begin(&tree, &about)
                .expect("written")
                .end()
                .is_empty()
        );
        assert!(!notes.dir.exists());
    }

    #[test]
    fn only_names_with_dead_process_ids_are_leftovers() {
        assert!(of_a_dead_one(PREFIX, "seekwell-4194999-0"));
        let own = format!("seekwell-{}-0", std::process::id());
        for other in [own.as_str(), "seekwell-x-0", "system.slice", "seekwell-"] {
            assert!(!of_a_dead_one(PREFIX, other), "{other}");
        }
    }
}
