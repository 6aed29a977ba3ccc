//! Where results go: stdout, or a file that appears whole or not at all.

use crate::fail::Failure;
use anstream::adapter::strip_str;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An open result.
pub struct Out {
    to: Box<dyn Write>,
    plain: bool,
    name: String,
    /// Temporary and final name, for a file.
    rename: Option<(PathBuf, PathBuf)>,
}

impl Out {
    /// `None` is stdout, in colour if it is a terminal and NO_COLOR is not set.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            let stdout = io::stdout();
            let plain = anstream::AutoStream::choice(&stdout) == anstream::ColorChoice::Never;
            return Ok(Out {
                to: Box::new(BufWriter::new(stdout.lock())),
                plain,
                name: "standard output".to_owned(),
                rename: None,
            });
        };
        let name = path.display().to_string();
        let file_name = path.file_name().ok_or_else(|| {
            Failure::input(format!("{name}: not the name of a file; give `-o FILE`"))
        })?;
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(file_name);
        temporary.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(temporary);
        let file = File::create(&part).map_err(|source| Failure::Output {
            what: format!("{name}: cannot be written"),
            source,
        })?;
        Ok(Out {
            to: Box::new(BufWriter::new(file)),
            plain: true,
            name,
            rename: Some((part, path.to_owned())),
        })
    }

    /// Whether a result can be written there, before minutes are spent on it.
    pub fn check(path: Option<&Path>) -> Result<(), Failure> {
        if let Some(p) = path.filter(|p| p.is_dir()) {
            return Err(Failure::Output {
                what: format!("{}: cannot be written", p.display()),
                source: io::ErrorKind::IsADirectory.into(),
            });
        }
        path.map_or(Ok(()), |p| Out::open(Some(p)).map(drop))
    }

    fn failed(&self, source: io::Error) -> Failure {
        Failure::Output {
            what: format!("{}: cannot be written", self.name),
            source,
        }
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        let stripped;
        let bytes = if self.plain {
            stripped = strip_str(text).to_string();
            stripped.as_bytes()
        } else {
            text.as_bytes()
        };
        self.to.write_all(bytes).map_err(|e| self.failed(e))
    }
    /// Adds text and a newline.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.text(text)?;
        self.text("\n")
    }
    /// Adds a value as one JSON document.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.line(&format!("{value:#}"))
    }
    /// Everything is written: a file gets its name now.
    pub fn done(mut self) -> Result<(), Failure> {
        self.to.flush().map_err(|e| self.failed(e))?;
        if let Some((part, path)) = self.rename.take() {
            std::fs::rename(&part, &path).map_err(|e| {
                let _ = std::fs::remove_file(&part);
                self.failed(e)
            })?;
        }
        Ok(())
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.rename {
            let _ = std::fs::remove_file(part);
        }
    }
}

/// Columns to wrap prose to: those of the terminal, at most 100.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    columns.unwrap_or(100).clamp(40, 100)
}

/// A message about the run, on stderr, unless `--quiet`.
pub fn note(quiet: bool, text: &str) {
    if !quiet {
        let w = seekwell_report::style::WARN;
        let _ = writeln!(anstream::stderr(), "{w}note:{w:#} {text}");
    }
}
