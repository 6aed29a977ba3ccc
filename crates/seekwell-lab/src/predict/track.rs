//! The record of the predictions of this machine that were measured. It is a file of JSON lines.

use super::outcome::{Claim, Outcome, Ratio};
use rustix::fs::{FlockOperation, flock};
use seekwell_host::left::VARIABLE;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Version of a line. It is raised when a field changes its meaning.
pub const LINE_VERSION: u32 = 1;

/// Name of the file.
const FILE: &str = "predictions.jsonl";
/// Directory of the record of the whole machine. Only root can write there.
const MACHINE: &str = "/var/lib/seekwell";
/// Largest size of a record that is read, in bytes.
const MOST: u64 = 64 << 20;

/// A prediction that was measured: one scheduler against the active one, for one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Always [`LINE_VERSION`].
    pub version: u32,
    /// Time of the measurement in s since 1970.
    pub unix_s: u64,
    /// Version of seekwell that made the prediction.
    pub seekwell: String,
    /// Kernel release of the measurement.
    pub kernel: String,
    /// Description of the device that was measured.
    pub device: String,
    /// The modelled device.
    pub preset: String,
    /// Workload.
    pub workload: String,
    /// Deciding metric.
    pub metric: String,
    /// The scheduler that was predicted.
    pub one: String,
    /// The scheduler that it was compared with.
    pub other: String,
    /// The predicted ratio.
    pub predicted: Ratio,
    /// What was predicted.
    pub claim: Claim,
    /// The stated probability that the prediction is right.
    pub probability: f64,
    /// Number of lines behind the probability.
    pub lines: usize,
    /// The measured ratio.
    pub live: Ratio,
    /// What the measurement shows; `None` if it does not decide.
    pub shown: Option<Claim>,
    /// The score.
    pub outcome: Outcome,
}

impl Line {
    /// Returns the score of the baseline, which predicts no difference for every pair.
    pub fn baseline(&self) -> Outcome {
        match self.shown {
            None => Outcome::NotTestable,
            Some(Claim::Level) => Outcome::Right,
            Some(_) => Outcome::Wrong,
        }
    }
}

/// Directories that may hold the record.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Value of `SEEKWELL_STATE_DIR`, which replaces all others.
    pub told: Option<OsString>,
    /// Value of `XDG_STATE_HOME`.
    pub state: Option<OsString>,
    /// Value of `HOME`.
    pub home: Option<OsString>,
    /// Whether the process runs as root.
    pub root: bool,
}

impl Places {
    /// Returns the directories of this process.
    pub fn here() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        Places {
            told: set(VARIABLE),
            state: set("XDG_STATE_HOME"),
            home: set("HOME"),
            root: rustix::process::geteuid().is_root(),
        }
    }
    fn own(&self) -> Option<PathBuf> {
        let state = self.state.as_ref().map(PathBuf::from);
        let home = self
            .home
            .as_ref()
            .map(|h| Path::new(h).join(".local/state"));
        Some(state.or(home)?.join("seekwell").join(FILE))
    }
    /// Returns the files to read: that of the machine, then that of the user.
    pub fn to_read(&self) -> Vec<PathBuf> {
        match &self.told {
            Some(dir) => vec![Path::new(dir).join(FILE)],
            None => {
                let machine = Path::new(MACHINE).join(FILE);
                let own = self.own().filter(|_| !self.root);
                std::iter::once(machine).chain(own).collect()
            }
        }
    }
    /// Returns the file to write: that of the machine for root, else that of the user.
    pub fn to_write(&self) -> Option<PathBuf> {
        match (&self.told, self.root) {
            (Some(dir), _) => Some(Path::new(dir).join(FILE)),
            (None, true) => Some(Path::new(MACHINE).join(FILE)),
            (None, false) => self.own(),
        }
    }
}

/// The lines of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// The lines, oldest first.
    pub lines: Vec<Line>,
    /// Number of lines that could not be read.
    pub broken: usize,
}

impl Track {
    /// Reads all lines of some files. A missing file has no lines.
    ///
    /// # Errors
    /// A file exists and cannot be read.
    pub fn read(files: &[PathBuf]) -> io::Result<Track> {
        let mut track = Track::default();
        for path in files {
            let file = match File::open(path) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(io::Error::other(format!("{}: {e}", path.display()))),
            };
            let mut bytes = Vec::new();
            file.take(MOST).read_to_end(&mut bytes)?;
            let text = String::from_utf8_lossy(&bytes);
            for line in text.lines().filter(|l| !l.trim().is_empty()) {
                match serde_json::from_str::<Line>(line) {
                    Ok(l) if l.version <= LINE_VERSION => track.lines.push(l),
                    _ => track.broken += 1,
                }
            }
        }
        track.lines.sort_by_key(|l| l.unix_s);
        Ok(track)
    }
}

/// Appends lines to a file, in one write under a lock. A line that a crash cut off is ended first.
///
/// # Errors
/// The file or its directory cannot be created or written.
pub fn append(path: &Path, lines: &[Line]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
    }
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o644)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    flock(&file, FlockOperation::LockExclusive)?;
    let mut text = String::new();
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != [b'\n'] {
        text.push('\n');
    }
    for line in lines {
        text += &serde_json::to_string(line).map_err(io::Error::other)?;
        text.push('\n');
    }
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a line with a claim, its probability and its score.
    pub fn line(claim: Claim, probability: f64, outcome: Outcome) -> Line {
        let ratio = |times: f64| Ratio {
            times,
            interval: Some((times * 0.9, times * 1.1)),
        };
        let shown = match outcome {
            Outcome::Right => Some(claim),
            Outcome::Wrong if claim == Claim::Level => Some(Claim::Ahead),
            Outcome::Wrong => Some(Claim::Level),
            Outcome::NotTestable => None,
        };
        Line {
            version: LINE_VERSION,
            unix_s: 1,
            seekwell: "0.1.0".to_owned(),
            kernel: "6.18".to_owned(),
            device: "SATA SSD".to_owned(),
            preset: "ssd:sata-tlc-1t".to_owned(),
            workload: "fs-mark".to_owned(),
            metric: "files".to_owned(),
            one: "bfq".to_owned(),
            other: "none".to_owned(),
            predicted: ratio(1.2),
            claim,
            probability,
            lines: 0,
            live: ratio(1.0),
            shown,
            outcome,
        }
    }

    #[test]
    fn lines_are_appended_and_read_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("deep/er/predictions.jsonl");
        let lines = [
            line(Claim::Ahead, 0.7, Outcome::Right),
            line(Claim::Level, 0.66, Outcome::Wrong),
        ];
        append(&path, &lines[..1]).expect("written");
        append(&path, &lines[1..]).expect("written");
        let track = Track::read(std::slice::from_ref(&path)).expect("read");
        assert_eq!((track.lines.as_slice(), track.broken), (&lines[..], 0));
        assert_eq!(
            Track::read(&[dir.path().join("none")]).expect("none"),
            Track::default()
        );
    }

    #[test]
    fn a_line_that_was_cut_off_spoils_only_itself() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("predictions.jsonl");
        let good = line(Claim::Ahead, 0.7, Outcome::Right);
        append(&path, std::slice::from_ref(&good)).expect("written");
        let mut text = std::fs::read_to_string(&path).expect("read");
        text += "{\"version\":1,\"unix";
        std::fs::write(&path, text).expect("written");
        append(&path, std::slice::from_ref(&good)).expect("written");
        let track = Track::read(&[path]).expect("read");
        assert_eq!((track.lines.len(), track.broken), (2, 1));
    }

    #[test]
    fn many_writers_lose_no_line() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("predictions.jsonl");
        std::thread::scope(|s| {
            for _ in 0..8 {
                s.spawn(|| {
                    for _ in 0..10 {
                        let l = line(Claim::Ahead, 0.7, Outcome::Right);
                        append(&path, &[l.clone(), l]).expect("written");
                    }
                });
            }
        });
        let track = Track::read(&[path]).expect("read");
        assert_eq!((track.lines.len(), track.broken), (160, 0));
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("predictions.jsonl");
        let other = dir.path().join("other");
        std::fs::write(&other, "").expect("written");
        std::os::unix::fs::symlink(&other, &path).expect("linked");
        append(&path, &[line(Claim::Ahead, 0.7, Outcome::Right)]).expect_err("a link");
        assert_eq!(std::fs::read_to_string(other).expect("read"), "");
    }

    #[test]
    fn root_writes_the_record_of_the_machine_and_users_their_own() {
        let mut p = Places {
            home: Some("/home/me".into()),
            ..Places::default()
        };
        let own = PathBuf::from("/home/me/.local/state/seekwell/predictions.jsonl");
        assert_eq!(p.to_write(), Some(own.clone()));
        assert_eq!(
            p.to_read(),
            [Path::new("/var/lib/seekwell/predictions.jsonl"), &own]
        );
        p.state = Some("/s".into());
        assert_eq!(p.to_write(), Some("/s/seekwell/predictions.jsonl".into()));
        p.root = true;
        assert_eq!(
            p.to_write(),
            Some("/var/lib/seekwell/predictions.jsonl".into())
        );
        assert_eq!(p.to_read().len(), 1);
        p.told = Some("/t".into());
        assert_eq!(p.to_write(), Some("/t/predictions.jsonl".into()));
        assert_eq!(p.to_read(), [Path::new("/t/predictions.jsonl")]);
    }
}
