//! What runs that were killed, or that a power cut ended, left behind beside a device's settings,
//! which [`crate::switch::journal`] has: experiments half made, programs, control groups, instances
//! of tracefs.
//!
//! While an experiment sets schedulers a note about it is on the medium, in a directory that
//! survives a boot, locked as long as its process lives. A note that nobody holds tells what was
//! cut short and how it is gone on with. Left out: who cut it short.

use crate::block::Tree;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The environment variable that names another directory than `/var/lib/seekwell`.
pub const VARIABLE: &str = "SEEKWELL_STATE_DIR";
const DEFAULT: &str = "/var/lib/seekwell";
/// What names of ours begin with, before the number of the process.
pub(crate) const PREFIX: &str = "seekwell-";

/// An experiment that is under way, or was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its name.
    pub experiment: String,
    /// The directory its programs write in.
    pub dir: PathBuf,
    /// The folder its results are in.
    pub results: PathBuf,
    /// The command that goes on with it.
    pub again: String,
}

/// What is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    schema: u32,
    boot_id: String,
    pid: u32,
    #[serde(flatten)]
    about: About,
}

/// Where notes of experiments are.
#[derive(Clone, Debug)]
pub struct Notes {
    dir: PathBuf,
}

/// A note of an experiment that lives; it goes when this is dropped.
#[derive(Debug)]
pub struct Note {
    path: PathBuf,
    _file: File,
}

/// A note that nobody holds any more.
#[derive(Debug)]
pub struct Dead {
    /// What it was.
    pub about: About,
    /// The machine was booted since.
    pub booted: bool,
    /// The process.
    pub pid: u32,
    note: Note,
}

impl Notes {
    /// Of a machine, or of a copy of one.
    pub fn of(tree: &Tree) -> Self {
        let told = std::env::var_os(VARIABLE).filter(|d| !d.is_empty() && tree.is_live());
        let state = told.map_or_else(|| tree.at(DEFAULT), PathBuf::from);
        Notes {
            dir: state.join("runs"),
        }
    }

    /// Notes an experiment down. What an earlier run of the same left is replaced by it.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn begin(&self, tree: &Tree, about: &About) -> io::Result<Note> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        for old in self.dead(tree) {
            match old.about.results == about.results {
                true => old.forget(),
                // Another's: it waits to be told.
                false => old.leave(),
            }
        }
        let mut how = DirBuilder::new();
        how.mode(0o755).recursive(true).create(&self.dir)?;
        if !ours(&fs::symlink_metadata(&self.dir)?) {
            return Err(io::Error::other("others could write there"));
        }
        let pid = std::process::id();
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("{pid}-{n}.json"));
        let early = path.with_extension("new");
        let entry = Entry {
            schema: 1,
            boot_id: boot(tree),
            pid,
            about: about.clone(),
        };
        let mut how = OpenOptions::new();
        how.write(true).create(true).truncate(true).mode(0o600);
        let mut file = how.custom_flags(libc::O_NOFOLLOW).open(&early)?;
        // Locked before it has its name: nobody takes it for a dead one's.
        file.try_lock().map_err(io::Error::from)?;
        file.write_all(serde_json::to_string(&entry)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&early, &path)?;
        File::open(&self.dir)?.sync_all()?;
        Ok(Note { path, _file: file })
    }

    /// Experiments that were cut short, by the names of their notes. Half a note is removed.
    pub fn dead(&self, tree: &Tree) -> Vec<Dead> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        paths.sort();
        paths.iter().filter_map(|p| one(tree, p)).collect()
    }

    /// Removes the directory once it is empty.
    pub fn tidy(&self) {
        let _ = fs::remove_dir(&self.dir);
    }
}

fn one(tree: &Tree, path: &Path) -> Option<Dead> {
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
        _file: file,
    };
    if path.extension().is_some_and(|x| x == "new") {
        drop(note);
        return None;
    }
    let entry: Option<Entry> = serde_json::from_reader(&note._file).ok();
    match entry.filter(|e| e.schema == 1) {
        Some(e) => Some(Dead {
            booted: e.boot_id != boot(tree),
            about: e.about,
            pid: e.pid,
            note,
        }),
        // A newer version's, or somebody's: left where it is.
        None => {
            note.leave();
            None
        }
    }
}

impl Note {
    /// Lets go of it and leaves it there.
    fn leave(mut self) {
        self.path = PathBuf::new();
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if self.path != Path::new("") {
            let _ = fs::remove_file(&self.path);
            // The last one out.
            let _ = self.path.parent().map(fs::remove_dir);
        }
    }
}

impl Dead {
    /// It was told; the note goes.
    pub fn forget(self) {
        drop(self.note);
    }
    /// It stays for the next time.
    pub fn leave(self) {
        self.note.leave();
    }
}

fn boot(tree: &Tree) -> String {
    let id = fs::read_to_string(tree.at("/proc/sys/kernel/random/boot_id"));
    id.unwrap_or_default().trim().to_owned()
}

/// Nobody but this user can have written it.
fn ours(meta: &fs::Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
}

/// The process that a name of ours has in it, if that is no more: `seekwell-PID-N`.
pub(crate) fn of_a_dead_one(prefix: &str, name: &str) -> bool {
    let pid = name.strip_prefix(prefix).and_then(|n| n.split('-').next());
    pid.and_then(|p| p.parse::<u32>().ok())
        .is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

/// Removes control groups and instances of tracefs of processes that are no more, and gives their
/// paths. What is still used stays.
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
            // Of groups within groups the inner ones first.
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
        }
    }

    #[test]
    fn a_note_lives_with_its_run_and_is_found_after_it() {
        let t = Scratch::new(&std::env::temp_dir(), "notes").expect("made");
        let tree = Tree::below(t.path());
        let notes = Notes::of(&tree);
        assert!(notes.dead(&tree).is_empty());
        let note = notes.begin(&tree, &about("a")).expect("written");
        assert!(notes.dead(&tree).is_empty(), "it lives");
        drop(note);
        assert!(!notes.dir.exists(), "an orderly end leaves nothing");
        // As after kill -9: the file is there, and nobody holds it.
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
        // Dropping the second is as much as telling of it: one is left, and the newer one.
        assert_eq!(notes.dead(&tree).len(), 1);
        assert!(!notes.dir.join("1-0.new").exists() && notes.dir.join("2-0.json").exists());
    }

    #[test]
    fn the_same_experiment_again_takes_its_old_notes_place() {
        let t = Scratch::new(&std::env::temp_dir(), "notes").expect("made");
        let tree = Tree::below(t.path());
        let notes = Notes::of(&tree);
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

    #[test]
    fn only_names_of_processes_that_are_no_more_are_debris() {
        assert!(of_a_dead_one(PREFIX, "seekwell-4194999-0"));
        let own = format!("seekwell-{}-0", std::process::id());
        for other in [own.as_str(), "seekwell-x-0", "system.slice", "seekwell-"] {
            assert!(!of_a_dead_one(PREFIX, other), "{other}");
        }
    }
}
