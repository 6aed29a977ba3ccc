//! A sign of life on stderr while many runs go on: only on a terminal, never with `--quiet`.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Counts runs and I/Os over all threads.
pub struct Progress {
    bar: ProgressBar,
    runs: u64,
}

impl Progress {
    /// For so many runs.
    pub fn new(quiet: bool, runs: usize) -> Self {
        let visible = !quiet && std::io::stderr().is_terminal();
        let bar = if visible {
            let bar = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{spinner} {elapsed} {human_pos} I/Os {msg}");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        } else {
            ProgressBar::hidden()
        };
        Progress {
            bar,
            runs: runs as u64,
        }
    }
    /// A counter for one run; what it is given is the number of completions so far.
    pub fn one(&self, name: &str) -> impl FnMut(u64) -> bool + use<> {
        self.bar
            .set_message(format!("({name}, {} runs)", self.runs));
        let bar = self.bar.clone();
        let mut last = 0;
        move |n| {
            bar.inc(n.saturating_sub(last));
            last = n;
            true
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Time used of a budget, and what it is used for.
pub struct Budget {
    bar: ProgressBar,
}

impl Budget {
    /// Of so many seconds.
    pub fn new(quiet: bool, budget_s: f64) -> Self {
        let visible = !quiet && std::io::stderr().is_terminal();
        let bar = if visible {
            let bar = ProgressBar::new((budget_s * 1e3) as u64);
            let style = ProgressStyle::with_template("{spinner} [{bar:30}] {elapsed} {msg}");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        } else {
            ProgressBar::hidden()
        };
        Budget { bar }
    }
    /// Where it stands.
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
