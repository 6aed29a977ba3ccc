//! Progress of a command: a bar on stderr with the completed work, the elapsed time and the time
//! left.
//!
//! The bar is shown if stderr is a terminal and `--quiet` is not given. It is removed when the
//! command prints or fails. Without a bar, this module only checks for signals.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use seekwell_core::{Nanos, foreign};
use seekwell_host::Pulse;
use seekwell_host::stop::signal;
use seekwell_trace::Reader;
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Number of steps of the bar for each run.
const WHOLE: u64 = 1000;
/// Interval between redraws.
const TICK: Duration = Duration::from_millis(150);
/// Minimum fraction and minimum time in seconds for an estimate of the time left.
const KNOWN: (f64, f64) = (0.005, 0.7);

/// Formats a time as `0:07`, `12:34` or `1:02:03`.
fn clock(seconds: f64) -> String {
    let s = seconds.clamp(0.0, 359_999.0) as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// Writes the time left, estimated from the average speed so far.
fn eta(state: &ProgressState, w: &mut dyn Write) {
    let (share, took) = (f64::from(state.fraction()), state.elapsed().as_secs_f64());
    let text = if share >= KNOWN.0 && took >= KNOWN.1 {
        format!("ETA {}", clock(took * (1.0 - share) / share))
    } else {
        "ETA -:--".to_owned()
    };
    // A failed write is ignored.
    let _ = w.write_str(&text);
}

fn elapsed(state: &ProgressState, w: &mut dyn Write) {
    let _ = w.write_str(&clock(state.elapsed().as_secs_f64()));
}

/// Returns whether the bar is visible.
fn visible(quiet: bool) -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    !quiet && !dumb && std::io::stderr().is_terminal()
}

/// Returns a bar with this number of steps; the bar is hidden if it should not be visible.
fn bar(quiet: bool, steps: u64) -> ProgressBar {
    if !visible(quiet) {
        return ProgressBar::hidden();
    }
    let template = "{bar:20} {percent:>3} %  {prefix}  {took}  {left}  {wide_msg}";
    styled(ProgressBar::new(steps.max(1)), template)
}

/// Returns a counter for work of unknown length.
fn counter(quiet: bool) -> ProgressBar {
    if !visible(quiet) {
        return ProgressBar::hidden();
    }
    styled(ProgressBar::new_spinner(), "{spinner} {prefix}  {took}")
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(
            style
                .with_key("took", elapsed)
                .with_key("left", eta)
                .progress_chars("█▉▊▋▌▍▎▏░"),
        );
    }
    bar.enable_steady_tick(TICK);
    bar
}

/// Counts the runs of all threads, and their progress.
pub struct Progress {
    bar: ProgressBar,
    /// The unit of the count, for example "runs".
    what: &'static str,
    all: AtomicU64,
    done: AtomicU64,
    /// For each kind of runs, the count of a finished run, which is the estimated length of the
    /// others. 0 means that none has finished.
    counted: Vec<AtomicU64>,
}

impl Progress {
    /// Makes a bar for `runs` runs (or another unit). They are of `kinds` kinds; runs of the same
    /// kind do the same work.
    pub fn new(quiet: bool, what: &'static str, runs: usize, kinds: usize) -> Self {
        let p = Progress {
            bar: bar(quiet, runs as u64 * WHOLE),
            what,
            all: AtomicU64::new(runs as u64),
            done: AtomicU64::new(0),
            counted: (0..kinds.max(1)).map(|_| AtomicU64::new(0)).collect(),
        };
        p.show();
        p
    }
    fn show(&self) {
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let (done, all) = (load(&self.done), load(&self.all));
        self.bar
            .set_prefix(format!("{done} of {all} {}", self.what));
    }
    /// Sets the number of runs.
    pub fn set_total(&self, runs: u64) {
        self.all.store(runs, Ordering::Relaxed);
        self.bar.set_length((runs * WHOLE).max(1));
        self.show();
    }
    /// Sets the number of runs done and planned, and the name of the next one.
    pub fn at(&self, done: u64, all: u64, name: &str) {
        self.all.store(all, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
        self.bar.set_length((all * WHOLE).max(1));
        self.bar.set_position(done * WHOLE);
        self.bar.set_message(foreign::plain(name));
        self.show();
    }
    /// Starts a run of a kind. The run ends when the result is dropped.
    pub fn task(&self, kind: usize, name: &str) -> Task<'_> {
        self.bar.set_message(foreign::plain(name));
        Task {
            of: self,
            kind: kind.min(self.counted.len() - 1),
            steps: 0,
            count: 0,
            refused: false,
        }
    }
    /// Runs an action that writes to the terminal, with the bar hidden.
    pub fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        self.bar.suspend(act)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A run in progress.
pub struct Task<'a> {
    of: &'a Progress,
    kind: usize,
    steps: u64,
    count: u64,
    refused: bool,
}

impl Task<'_> {
    /// Sets the progress of the run; `total` 0 means unknown. Returns false after a signal; the
    /// caller must then stop.
    pub fn at(&mut self, done: u64, total: u64) -> bool {
        self.count = done;
        let total = match total {
            0 => self.of.counted[self.kind].load(Ordering::Relaxed),
            known => known,
        };
        if let Some(share) = (u128::from(done) * u128::from(WHOLE)).checked_div(total.into()) {
            // The last step is only counted at the end of the run.
            let steps = u64::try_from(share).unwrap_or(WHOLE).min(WHOLE - 1);
            self.of.bar.inc(steps.saturating_sub(self.steps));
            self.steps = self.steps.max(steps);
        }
        self.refused |= signal().is_some();
        !self.refused
    }
    /// Sets the progress to the number of bytes that these readers have read. Readers of pipes are
    /// ignored, because their length is unknown. Returns false after a signal; the caller must then
    /// stop.
    pub fn read_of(&mut self, readers: &[Reader]) -> bool {
        let far = readers.iter().filter_map(Reader::far);
        let (read, all) = far.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        self.at(read, all)
    }
    /// Returns whether a signal has told the run to stop.
    pub fn refused(&self) -> bool {
        self.refused
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if self.refused {
            return;
        }
        self.of.bar.inc(WHOLE - self.steps);
        self.of.counted[self.kind].fetch_max(self.count, Ordering::Relaxed);
        self.of.done.fetch_add(1, Ordering::Relaxed);
        self.of.show();
    }
}

/// Shows the used part of a time budget, and the current stage.
pub struct Budget {
    bar: ProgressBar,
}

impl Budget {
    /// Makes a bar for a budget of `budget_s` seconds.
    pub fn new(quiet: bool, budget_s: f64) -> Self {
        Budget {
            bar: bar(quiet, (budget_s * 1e3) as u64),
        }
    }
    /// Sets the stage, and the time used so far in seconds.
    pub fn at(&self, stage: &'static str, used_s: f64) {
        self.bar.set_position((used_s * 1e3) as u64);
        self.bar.set_message(stage);
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows the progress of a real run from another thread: the elapsed part of its duration, or the
/// number of operations if it has no duration.
pub struct Watched {
    bar: ProgressBar,
    over: Arc<AtomicBool>,
    watch: Option<JoinHandle<()>>,
}

impl Watched {
    /// Starts to show the progress.
    pub fn new(quiet: bool, pulse: Arc<Pulse>, span: Option<Nanos>) -> Self {
        let bar = match span {
            Some(span) => bar(quiet, span.0),
            None => counter(quiet),
        };
        let over = Arc::new(AtomicBool::new(false));
        let mut watched = Watched {
            bar: bar.clone(),
            over: Arc::clone(&over),
            watch: None,
        };
        if !bar.is_hidden() {
            watched.watch = Some(std::thread::spawn(move || {
                while !over.load(Ordering::Acquire) {
                    let ns = pulse.clock().map_or(0, |t| t.as_nanos());
                    bar.set_prefix(format!("{} operations", pulse.operations()));
                    if span.is_some() {
                        bar.set_position(u64::try_from(ns).unwrap_or(u64::MAX));
                    }
                    std::thread::park_timeout(TICK);
                }
            }));
        }
        watched
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(w) = self.watch.take() {
            w.thread().unpark();
            // The thread only draws, so its panic does not affect the run.
            let _ = w.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_shows_hours_only_from_one_hour_on() {
        assert_eq!(clock(0.4), "0:00");
        assert_eq!(clock(67.0), "1:07");
        assert_eq!(clock(3723.9), "1:02:03");
        assert_eq!(clock(f64::INFINITY), "99:59:59");
        assert_eq!(clock(f64::NAN), "0:00");
    }

    #[test]
    fn progress_never_decreases_and_estimates_a_task_from_an_earlier_one() {
        let p = Progress::new(true, "runs", 2, 1);
        let mut first = p.task(0, "a");
        assert!(first.at(300, 0) && first.steps == 0, "its end is not known");
        drop(first);
        let mut second = p.task(0, "b");
        assert!(second.at(150, 0) && second.steps == 500);
        assert!(second.at(100, 0) && second.steps == 500);
        assert!(second.at(900, 300) && second.steps == WHOLE - 1);
        drop(second);
        assert_eq!(p.done.load(Ordering::Relaxed), 2);
    }
}
