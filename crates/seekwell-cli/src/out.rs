//! The destination of results: stdout, or a file that appears atomically.

use crate::fail::Failure;
use crate::harmless::harmless;
use anstream::adapter::strip_str;
use seekwell_files::Sink;
use std::io::{self, BufRead, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

/// A result that is being written to its destination.
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

/// Number of bytes that are kept in memory before a file is opened.
const KEPT_BYTES: usize = 1 << 20;

/// A file that is opened when the buffer is full, or at the end of the output. A command that fails
/// before that leaves no file. If the file is a pipe, its reader may start later than the command.
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
    /// Opens the file if it is not open, and writes the buffered bytes.
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
    /// Opens a destination. `None` or `-` is stdout, with colours if it is a terminal and NO_COLOR
    /// is not set. Any other path is checked by [`Out::check`] and opened later.
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

    /// Checks that a result can be written to the path, before time is spent on it. Changes
    /// nothing.
    pub fn check(path: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = named(path) else {
            return Ok(());
        };
        seekwell_files::check(path).map_err(|source| Failure::Output {
            what: format!("{}: cannot be written", path.display()),
            source,
        })
    }

    /// Checks that the output is not one of the inputs, which it would replace.
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
                "{}: the same file as {}, which would be lost; name another file for the result",
                output.display(),
                other.display(),
            ))),
        }
    }

    /// Writes a text to a file.
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

    /// Adds text. Untrusted names in it cannot control the terminal.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        let stripped = self.plain.then(|| strip_str(text).to_string());
        let text = harmless(stripped.as_deref().unwrap_or(text));
        let written = self.to.write(text.as_bytes());
        written.map_err(|e| self.failed(e))
    }
    /// Adds bytes unchanged.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.to.write(bytes);
        written.map_err(|e| self.failed(e))
    }
    /// Adds text and a newline.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.text(text)?;
        self.text("\n")
    }
    /// Adds lines of prose, wrapped to the terminal.
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
    /// Ends the output: a file gets its name.
    pub fn done(mut self) -> Result<(), Failure> {
        let done = match &mut self.to {
            To::Stdout(out) => out.flush(),
            To::File(late) => late.emptied().and_then(Sink::finish),
        };
        done.map_err(|e| self.failed(e))
    }
}

/// Returns the path, or `None` if it is `-`, which means standard output.
fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|p| *p != Path::new("-"))
}

/// Returns the width for wrapped prose: the width of the terminal, but at most 100.
pub fn width() -> usize {
    columns().min(100)
}

/// Returns the width for tables: COLUMNS, or the width of the terminal, or 100.
pub fn columns() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let terminal = || {
        let stdout = io::stdout();
        let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
        Some(usize::from(size.ws_col)).filter(|c| *c > 0)
    };
    told.or_else(terminal).unwrap_or(100).clamp(40, 400)
}

/// Prints a message about the run on stderr, unless `--quiet` is given.
pub fn note(quiet: bool, text: &str) {
    if !quiet {
        let w = seekwell_report::style::WARN;
        let text = harmless(text);
        let _ = writeln!(anstream::stderr(), "{w}note:{w:#} {text}");
    }
}

/// Asks a question on the terminal; returns the answer without its line end.
pub fn ask(question: &str) -> String {
    let mut err = anstream::stderr();
    let _ = write!(err, "{}", harmless(question));
    let _ = err.flush();
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    line.trim().to_owned()
}
