//! Stored results of the robustness checks, one line of JSON per result. Each result is appended
//! when it is complete, so that an interrupted check can continue.

use super::{Figures, GuardError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Stored result of one variant of the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Hash of the runs that gave the result.
    pub of: String,
    /// Name of the variant.
    pub what: String,
    /// The values, by published test and scheduler.
    pub figures: Figures,
    /// Additional numbers by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<String, f64>,
    /// Reasons why runs failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// A file of stored results.
pub struct Kept {
    path: PathBuf,
    lines: Vec<Line>,
    /// The open file; `None` until the first line is added.
    file: Option<File>,
}

impl Kept {
    /// Reads the stored lines. Skips an incomplete line.
    ///
    /// # Errors
    /// The file exists but cannot be read.
    pub fn open(path: &Path) -> Result<Kept, GuardError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(GuardError::Text(format!("{}: {e}", path.display()))),
        };
        Ok(Kept {
            path: path.to_owned(),
            ..Kept::read(&text)
        })
    }
    /// Parses the text of a file of stored results. The returned object cannot add lines.
    pub fn read(text: &str) -> Kept {
        let lines = text.lines().filter_map(|l| serde_json::from_str(l).ok());
        Kept {
            path: PathBuf::new(),
            lines: lines.collect(),
            file: None,
        }
    }
    /// Returns the stored result of the variant `what`, if runs with the hash `of` produced it.
    pub fn get(&self, of: &str, what: &str) -> Option<&Line> {
        self.lines.iter().find(|l| l.of == of && l.what == what)
    }
    /// Appends a line to the file.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn add(&mut self, line: Line) -> Result<(), GuardError> {
        let failed = |e: std::io::Error| {
            let path = self.path.display();
            GuardError::Text(format!("{path}: cannot be written: {e}"))
        };
        let text = serde_json::to_string(&line).map_err(|e| failed(e.into()))?;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                if let Some(dir) = self.path.parent() {
                    std::fs::create_dir_all(dir).map_err(failed)?;
                }
                let mut options = File::options();
                let mut file = options
                    .append(true)
                    .create(true)
                    .open(&self.path)
                    .map_err(failed)?;
                // An incomplete last line must not corrupt the new line.
                if file.metadata().map_err(failed)?.len() > 0 {
                    file.write_all(b"\n").map_err(failed)?;
                }
                self.file.insert(file)
            }
        };
        file.write_all(format!("{text}\n").as_bytes())
            .map_err(failed)?;
        self.lines.push(line);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_costs_itself_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("a/kept.jsonl");
        let line = |what: &str| Line {
            of: "0f".to_owned(),
            what: what.to_owned(),
            figures: vec![vec![Some(1.5), None]],
            ..Line::default()
        };
        let mut kept = Kept::open(&path).expect("nothing there");
        kept.add(line("one")).expect("written");
        kept.add(line("two")).expect("written");
        let text = std::fs::read_to_string(&path).expect("there");
        std::fs::write(&path, &text[..text.len() - 9]).expect("cut");
        let mut kept = Kept::open(&path).expect("readable");
        assert_eq!(kept.get("0f", "one"), Some(&line("one")));
        assert_eq!((kept.get("0f", "two"), kept.get("00", "one")), (None, None));
        kept.add(line("two")).expect("written");
        let kept = Kept::open(&path).expect("readable");
        assert!(kept.get("0f", "one").is_some() && kept.get("0f", "two").is_some());
    }
}
