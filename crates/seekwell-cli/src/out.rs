//! Where results go: stdout, or a file that appears whole or not at all.

use crate::fail::Failure;
use anstream::adapter::strip_str;
use seekwell_files::Sink;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

/// A result under way.
pub struct Out {
    to: To,
    plain: bool,
    name: String,
}

enum To {
    Stdout(BufWriter<StdoutLock<'static>>),
    File(Late),
}

impl To {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            To::Stdout(out) => out.write_all(bytes),
            To::File(late) => late.write(bytes),
        }
    }
}

/// What is kept in memory before a file is opened.
const KEPT_BYTES: usize = 1 << 20;

/// A file that is not opened before there is much to write or all is written: a command that
/// fails, or is killed while it measures, leaves nothing behind, and a pipe's reader may come late.
struct Late {
    path: PathBuf,
    kept: Vec<u8>,
    sink: Option<Sink>,
}

impl Late {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.kept.extend_from_slice(bytes);
        if self.kept.len() < KEPT_BYTES {
            return Ok(());
        }
        let mut sink = self.emptied()?;
        sink.flush()?;
        self.sink = Some(sink);
        Ok(())
    }
    /// Opened if need be, with what was kept in it.
    fn emptied(&mut self) -> io::Result<Sink> {
        let mut sink = match self.sink.take() {
            Some(sink) => sink,
            None => Sink::open(&self.path)?,
        };
        sink.write_all(&self.kept)?;
        self.kept.clear();
        Ok(sink)
    }
}

impl Out {
    /// `None` or `-` is stdout, in colour if it is a terminal and NO_COLOR is not set. A path is
    /// checked as by [`Out::check`] and opened later.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = named(path) else {
            let stdout = io::stdout();
            let plain = anstream::AutoStream::choice(&stdout) == anstream::ColorChoice::Never;
            return Ok(Out {
                to: To::Stdout(BufWriter::new(stdout.lock())),
                plain,
                name: "standard output".to_owned(),
            });
        };
        Out::check(Some(path))?;
        let late = Late {
            path: path.to_owned(),
            kept: Vec::new(),
            sink: None,
        };
        Ok(Out {
            to: To::File(late),
            plain: true,
            name: path.display().to_string(),
        })
    }

    /// Whether a result can be written there, before minutes are spent on it. Changes nothing.
    pub fn check(path: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = named(path) else {
            return Ok(());
        };
        seekwell_files::check(path).map_err(|source| Failure::Output {
            what: format!("{}: cannot be written", path.display()),
            source,
        })
    }

    /// Whether a result would take the place of what it is made from.
    pub fn apart<'a>(
        output: Option<&Path>,
        inputs: impl IntoIterator<Item = &'a Path>,
    ) -> Result<(), Failure> {
        let Some(output) = named(output) else {
            return Ok(());
        };
        match inputs.into_iter().find(|i| seekwell_files::same(output, i)) {
            None => Ok(()),
            Some(other) => Err(Failure::input(format!(
                "{}: the same file as {}, which would be lost: name another for the result",
                output.display(),
                other.display(),
            ))),
        }
    }

    /// Writes a text to a file of its own.
    pub fn whole(path: &Path, text: &str) -> Result<(), Failure> {
        let mut out = Out::open(Some(path))?;
        out.text(text)?;
        out.done()
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
        let written = self.to.write(bytes);
        written.map_err(|e| self.failed(e))
    }
    /// Adds bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.to.write(bytes);
        written.map_err(|e| self.failed(e))
    }
    /// Adds text and a newline.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.text(text)?;
        self.text("\n")
    }
    /// Adds lines of prose, those that are too long for the terminal wrapped.
    pub fn prose(&mut self, text: &str) -> Result<(), Failure> {
        for line in text.lines() {
            match line {
                "" => self.line("")?,
                line => self.text(&seekwell_report::table::wrap(line, 0, width()))?,
            }
        }
        Ok(())
    }
    /// Adds a value as one JSON document.
    pub fn json(&mut self, value: &serde_json::Value) -> Result<(), Failure> {
        self.line(&crate::json::text(value))
    }
    /// Everything is written: a file gets its name now.
    pub fn done(mut self) -> Result<(), Failure> {
        let done = match &mut self.to {
            To::Stdout(out) => out.flush(),
            To::File(late) => late.emptied().and_then(Sink::finish),
        };
        done.map_err(|e| self.failed(e))
    }
}

/// A path that is one: `-` is standard output.
fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|p| *p != Path::new("-"))
}

/// Columns to wrap prose to: those of the terminal, at most 100.
pub fn width() -> usize {
    columns().min(100)
}

/// Columns that tables may take: COLUMNS, else those of the terminal, else 100.
pub fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let terminal = || {
        let stdout = io::stdout();
        let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
        Some(usize::from(size.ws_col)).filter(|c| *c > 0)
    };
    told.or_else(terminal).unwrap_or(100).clamp(40, 400)
}

/// A message about the run, on stderr, unless `--quiet`.
pub fn note(quiet: bool, text: &str) {
    if !quiet {
        let w = seekwell_report::style::WARN;
        let _ = writeln!(anstream::stderr(), "{w}note:{w:#} {text}");
    }
}
