//! Failures of commands, each with one message and one exit code.

use seekwell::SpecErrors;
use seekwell_lab::results::StoreError;
use seekwell_microscope::CaseError;
use seekwell_report::style::BAD;
use std::io::{self, Write};
use std::process::ExitCode;
use thiserror::Error;

/// Exit codes, in the text of `seekwell help` and of the manual page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a difference was found (explain --strict, check-worlds, verify-kernel),
       something got worse (diff), or a claim does not hold (demo)
  2    bad usage or bad input; the message names file, line or record, and what
       to do
  3    the result could not be written
  4    a run failed or ended early; all results so far are shown
  5    no difference, but the machine was too busy to judge everything
       (check-worlds), or to fit a preset (calibrate)
  128+N  stopped by signal N (SIGINT: 130, SIGTERM: 143, SIGHUP: 129); all
         results so far are shown; serve ends with 0
  any    switch --for and record return the exit code of their command";

/// Why a command failed.
#[derive(Error, Debug)]
pub enum Failure {
    /// The compared results differ. There is no message.
    #[error("")]
    Difference,
    /// The started command ended with this exit code. There is no message.
    #[error("")]
    Command(u8),
    /// A signal stopped the command. The message says which results were kept.
    #[error("{what}")]
    Interrupted {
        /// The signal's number.
        signal: i32,
        /// The message.
        what: String,
    },
    /// The user's input is wrong; the message says what to do.
    #[error("{0}")]
    Input(String),
    /// A run ended early; its results are written.
    #[error("{0}")]
    Early(String),
    /// No difference was found, but some figures could not be judged. The message says why.
    #[error("{0}")]
    NotJudged(String),
    /// A run could not be stored; the message says what is stored, and what to do.
    #[error("{0}")]
    NotKept(String),
    /// The result could not be written.
    #[error("{what}: {source}")]
    Output {
        /// The destination.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

impl Failure {
    /// Returns the failure for wrong input of the user.
    pub fn input(why: impl Into<String>) -> Self {
        Failure::Input(why.into())
    }
    /// Returns the failure for wrong words on the command line, one line each. The fields of the
    /// specification are omitted, because the user did not type them.
    pub fn words(prefix: &str, errors: &SpecErrors) -> Self {
        let lines: Vec<String> = errors
            .0
            .iter()
            .map(|e| format!("{prefix}{}", e.what))
            .collect();
        Failure::Input(lines.join("\n"))
    }
    /// Prints the message on stderr and returns the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Difference => ExitCode::from(1),
            Failure::Command(code) => ExitCode::from(*code),
            // If the reader of the output ends early (`| head`), this is not a failure.
            Failure::Output { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Failure::Interrupted { signal, .. } => {
                say(&self.to_string());
                // The exit code is the one that a shell returns for a program that a signal ended.
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
    // If stderr is closed too, the message is lost.
    let message = crate::harmless::harmless(message);
    let _ = writeln!(anstream::stderr(), "{BAD}error:{BAD:#} {message}");
}

/// Prints clap's text and returns the exit code. Help and version go to stdout with code 0, errors
/// go to stderr with code 2.
pub fn usage(e: &clap::Error) -> ExitCode {
    let text = e.render().ansi().to_string();
    let text = crate::harmless::harmless(&text);
    let _ = match e.use_stderr() {
        true => write!(anstream::stderr(), "{text}"),
        false => write!(anstream::stdout(), "{text}"),
    };
    ExitCode::from(if e.use_stderr() { 2 } else { 0 })
}

/// Converts an error of a results folder to the failure of a command.
pub fn results_failure(e: StoreError) -> Failure {
    match e {
        StoreError::Write { path, source, kept } => Failure::Output {
            what: format!("{}: cannot be written ({kept})", path.display()),
            source,
        },
        other => Failure::Input(other.to_string()),
    }
}
