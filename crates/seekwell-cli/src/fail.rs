//! How a command ends when it does not end well: one message, one exit code.

use seekwell::SpecErrors;
use seekwell_microscope::CaseError;
use seekwell_report::style::BAD;
use std::io::{self, Write};
use std::process::ExitCode;
use thiserror::Error;

/// Exit codes, as `seekwell help` and the manual page give them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a difference was found (explain --strict, check-worlds), something got worse (diff), or a
       claim does not hold (demo)
  2    bad usage or bad input: the message names file, line or record, and the remedy
  3    the result could not be written
  4    a run ended early or failed, what it had measured until then and the others were given
  5    nothing differs, but the machine was too busy for all to be judged (check-worlds)
  128+N  stopped by signal N (SIGINT: 130, SIGTERM: 143, SIGHUP: 129): as 4; but serve, which
         works until then, ends with 0
  any    switch --for passes on the code of the command it ran";

/// Why a command could not be done.
#[derive(Error, Debug)]
pub enum Failure {
    /// Nothing to say: what was asked for differs.
    #[error("")]
    Difference,
    /// Nothing to say: the command that was run ended with this code.
    #[error("")]
    Command(u8),
    /// A signal stopped it; says what was kept.
    #[error("{what}")]
    Interrupted {
        /// The signal's number.
        signal: i32,
        /// What was kept.
        what: String,
    },
    /// What the user gave does not work; says what to do about it.
    #[error("{0}")]
    Input(String),
    /// A run ended early; its results are written.
    #[error("{0}")]
    Early(String),
    /// Nothing differs, but not everything could be judged; says why.
    #[error("{0}")]
    NotJudged(String),
    /// A run could not be kept; says what is, and what to do.
    #[error("{0}")]
    NotKept(String),
    /// The result could not be written.
    #[error("{what}: {source}")]
    Output {
        /// Where to.
        what: String,
        /// Why.
        source: io::Error,
    },
}

impl Failure {
    /// Bad input.
    pub fn input(why: impl Into<String>) -> Self {
        Failure::Input(why.into())
    }
    /// Words that were typed and are wrong: each on a line of its own. Their fields are not said,
    /// for nobody typed those.
    pub fn words(prefix: &str, errors: &SpecErrors) -> Self {
        let lines: Vec<String> = errors
            .0
            .iter()
            .map(|e| format!("{prefix}{}", e.what))
            .collect();
        Failure::Input(lines.join("\n"))
    }
    /// Says it on stderr and gives the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Difference => ExitCode::from(1),
            Failure::Command(code) => ExitCode::from(*code),
            // A reader that has seen enough (`| head`) is no failure.
            Failure::Output { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Failure::Interrupted { signal, .. } => {
                say(&self.to_string());
                // As shells show a program that a signal ended.
                ExitCode::from(u8::try_from(128 + signal).unwrap_or(130))
            }
            Failure::Input(_) => {
                say(&self.to_string());
                ExitCode::from(2)
            }
            Failure::Early(_) => {
                say(&self.to_string());
                ExitCode::from(4)
            }
            Failure::NotJudged(_) => {
                say(&self.to_string());
                ExitCode::from(5)
            }
            Failure::NotKept(_) | Failure::Output { .. } => {
                say(&self.to_string());
                ExitCode::from(3)
            }
        }
    }
}

impl From<CaseError> for Failure {
    fn from(e: CaseError) -> Self {
        Failure::Input(e.to_string())
    }
}

fn say(message: &str) {
    // If stderr is gone too there is nobody left to tell.
    let message = crate::out::harmless(message);
    let _ = writeln!(anstream::stderr(), "{BAD}error:{BAD:#} {message}");
}

/// What clap found: help and version go to stdout with 0, the rest to stderr with 2.
pub fn usage(e: &clap::Error) -> ExitCode {
    let text = e.render().ansi().to_string();
    let text = crate::out::harmless(&text);
    let _ = match e.use_stderr() {
        true => write!(anstream::stderr(), "{text}"),
        false => write!(anstream::stdout(), "{text}"),
    };
    ExitCode::from(if e.use_stderr() { 2 } else { 0 })
}
