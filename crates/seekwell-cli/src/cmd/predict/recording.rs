//! The recording of a command: how its processes work, how it is judged, and what a simulation of
//! its requests cannot show.

use super::show::percent;
use crate::cli::{Ends, Predict};
use crate::cmd::record::{self, Ran};
use crate::cmd::switch::show::quoted;
use crate::fail::Failure;
use crate::traces::failed;
use seekwell::{Fit, WorkloadSpec, words};
use seekwell_core::prose::in_prose;
use seekwell_host::MachineFacts;
use seekwell_host::block::{Machine, Tree};
use seekwell_lab::experiment::{Bios, Deciding, Primary, Statistic};
use seekwell_lab::predict::{Forecast, Prediction};
use seekwell_report::table::{Align, Table, wrap};
use seekwell_report::units::{bytes, count, three, time_ns};
use seekwell_trace::{Habit, Habits, ReadOptions, ReplayMode, find_format};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Least number of requests for a prediction (chosen).
const REQUESTS: u64 = 100;
/// Least number of requests of a direction for its 99th percentile.
const FOR_P99: u64 = 5000;
/// Minimum share of reads (or of writes) for separate rows.
const SHARE: f64 = 0.05;
/// Ratio of simulated to recorded value above which a prediction is not reliable (chosen).
const FAR: f64 = 1.5;
/// The score of earlier predictions from recordings (docs/predict.md).
const NOT_BETTER: &str = "Earlier predictions from recordings were wrong for all 7 measured differences. \
                          So the probability of `better` and `worse` is at most 50 %.";
/// Number of processes that are shown one by one.
const SHOWN: usize = 5;
/// Maximum length of a command that is the label of its rows, in characters.
const LABEL: usize = 24;
/// Exit code of timeout(1) if the time was over.
const TIMED_OUT: u8 = 124;
/// Largest job file that is searched for a running time, bytes.
const JOB_BYTES: u64 = 64 << 10;
/// The format of the recording: the text of the kernel.
const FORMAT: &str = "ftrace";

/// A recorded command.
pub struct Recording {
    /// The command as it can be typed.
    pub command: String,
    /// The command if it is short, or else the name of the program, for tables.
    pub label: String,
    /// Whether the command ran for a fixed time.
    pub timed: bool,
    device: String,
    scheduler: String,
    code: u8,
    seconds: f64,
    lost: u64,
    habits: Habits,
    /// The trace. Its file has no name and disappears when it is closed.
    file: File,
}

/// Returns the name of the program.
fn program(command: &[OsString]) -> String {
    let name = command.first().map(Path::new).and_then(Path::file_name);
    name.map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}

/// Returns a number of seconds: 10, 10s or 2m.
fn seconds(text: &str) -> Option<(f64, bool)> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let n: f64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "" => Some((n, false)),
        "s" | "sec" => Some((n, true)),
        "m" | "min" => Some((60.0 * n, true)),
        _ => None,
    }
}

/// Returns whether words state a running time that is about `ran_s`, such as `--runtime=10`,
/// `timeout 10` or `-d 10s`.
fn states_time(words: &str, ran_s: f64) -> bool {
    let apart = |c: char| c.is_whitespace() || "=:,'\";".contains(c);
    let mut before = "";
    for word in words.split(apart).filter(|w| !w.is_empty()) {
        // -T10 is -T 10.
        let (option, text) = match word.strip_prefix('-') {
            Some(rest) if rest.len() > 1 && rest.is_char_boundary(1) => rest.split_at(1),
            _ => (before.trim_start_matches('-'), word),
        };
        let about_time = matches!(option, "t" | "T" | "d")
            || ["time", "dur", "sec"].iter().any(|w| option.contains(w));
        if let Some((s, unit)) = seconds(text)
            && (unit || about_time)
            && s >= 1.0
            && (s - 0.05..=1.05 * s + 1.5).contains(&ran_s)
        {
            return true;
        }
        before = word;
    }
    false
}

/// Returns whether the command or a small file that it names, such as a job file, states the time
/// that it ran.
fn ran_for_a_stated_time(command: &[OsString], ran: &Ran) -> bool {
    let timed_out = program(command) == "timeout" && ran.code == TIMED_OUT;
    let ran_s = ran.time.as_secs_f64();
    let text = |word: &OsString| {
        let small = std::fs::metadata(word).is_ok_and(|m| m.is_file() && m.len() <= JOB_BYTES);
        small.then(|| std::fs::read_to_string(word).ok()).flatten()
    };
    let line: Vec<_> = command.iter().map(|w| w.to_string_lossy()).collect();
    timed_out
        || states_time(&line.join(" "), ran_s)
        || command[1..]
            .iter()
            .filter_map(text)
            .any(|t| states_time(&t, ran_s))
}

impl Recording {
    /// Runs the command once and records its requests.
    ///
    /// # Errors
    /// The command fails, or makes too few requests on the device.
    pub fn make(
        a: &Predict,
        path: &Path,
        facts: &MachineFacts,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let words: Vec<String> = a
            .command
            .iter()
            .map(|w| quoted(&w.to_string_lossy()))
            .collect();
        let command = words.join(" ");
        let m = Machine::read(&Tree::default());
        let d = record::device(path, &m)?;
        let ran = record::record(d, None, &a.command, quiet)?;
        let stated = ran_for_a_stated_time(&a.command, &ran);
        if ran.code != 0 && !(stated && ran.code == TIMED_OUT) {
            return Err(Failure::input(format!(
                "{command}: ended with exit code {}, so nothing is predicted: make it succeed \
                 first, or end it with timeout(1)",
                ran.code
            )));
        }
        let text = ran.recorded.text.as_bytes();
        let raw = Some(find_format(FORMAT).map_err(failed)?);
        let cursor = std::io::Cursor::new(text.to_vec());
        let reader =
            seekwell_trace::from_reader("the recording", cursor, raw, &ReadOptions::default());
        let habits = match ran.recorded.events.is_empty() {
            true => Habits::default(),
            false => Habits::of(reader.map_err(failed)?).map_err(failed)?,
        };
        let n = habits.sum(Habit::requests);
        if n < REQUESTS {
            let at = path.display();
            return Err(Failure::input(match n {
                0 => format!(
                    "{command}: no request reached {}. Data in the page cache need none: drop the \
                     caches first (echo 3 | sudo tee /proc/sys/vm/drop_caches), use direct I/O, or \
                     end with fsync. Also check that its files are on the disk of {at}",
                    d.name
                ),
                n => format!(
                    "{command}: only {n} requests reached {}, and a prediction needs {REQUESTS}: \
                     give it more work, or check that its files are on the disk of {at} and not in \
                     the page cache",
                    d.name
                ),
            }));
        }
        let kept = |e| Failure::input(format!("the recording cannot be kept: {e}"));
        let mut file = tempfile::tempfile().map_err(kept)?;
        file.write_all(text).map_err(kept)?;
        Ok(Recording {
            label: match command.len() <= LABEL {
                true => command.clone(),
                false => program(&a.command),
            },
            timed: a.ends.map_or(stated, |e| e == Ends::Time),
            device: d.name.clone(),
            scheduler: facts.scheduler.clone(),
            code: ran.code,
            seconds: ran.time.as_secs_f64(),
            lost: ran.recorded.lost,
            command,
            habits,
            file,
        })
    }

    fn mode(&self) -> ReplayMode {
        match (self.habits.is_open(), self.timed) {
            (true, _) => ReplayMode::AsTimed,
            (false, true) => ReplayMode::Steady,
            (false, false) => ReplayMode::ClosedLoop,
        }
    }

    /// Returns the recording as a workload.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn workload(&self) -> Result<WorkloadSpec, Failure> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let mut spec = words::trace(&path).map_err(|e| Failure::words("", &e))?;
        if let WorkloadSpec::Trace {
            format, mode, fit, ..
        } = &mut spec
        {
            *format = Some(FORMAT.to_owned());
            *mode = self.mode().to_string();
            *fit = Fit::Wrap;
        }
        Ok(spec)
    }

    /// Returns whether the command is judged by the time for its work.
    pub fn by_duration(&self) -> bool {
        self.mode() == ReplayMode::ClosedLoop
    }

    /// Returns the metrics that decide.
    pub fn deciding(&self) -> Deciding {
        if self.by_duration() {
            return Deciding::alone(Primary::Duration);
        }
        let mut rows = vec![Primary::Block(Bios::All, Statistic::Mean)];
        let all = self.habits.sum(Habit::requests) as f64;
        for (bios, n) in [
            (Bios::Reads, self.habits.sum(|h| h.reads)),
            (Bios::Writes, self.habits.sum(|h| h.writes)),
        ] {
            let mixed = (SHARE..1.0 - SHARE).contains(&(n as f64 / all));
            if mixed {
                rows.push(Primary::Block(bios, Statistic::Mean));
            }
            if n >= FOR_P99 && n as f64 >= SHARE * all {
                rows.push(Primary::Block(bios, Statistic::Percentile(99.0)));
            }
        }
        if self.mode() == ReplayMode::Steady {
            rows.insert(0, Primary::Block(Bios::All, Statistic::Rate));
        }
        Deciding {
            primary: rows.remove(0),
            rows,
            checks: Vec::new(),
        }
    }

    /// Returns the recorded value of a metric, if the recording has it.
    fn recorded(&self, metric: &str) -> Option<f64> {
        let h = &self.habits;
        let span_s = h.span_ns as f64 / 1e9;
        let mean_ms = |sum: fn(&Habit) -> f64, n: fn(&Habit) -> u64| {
            let n = h.sum(n);
            (n > 0).then(|| h.tasks.iter().map(sum).sum::<f64>() / n as f64 / 1e6)
        };
        match metric {
            "duration" => Some(span_s),
            "block io rate" => Some(h.sum(Habit::requests) as f64 / span_s),
            "block io mean" => mean_ms(|h| h.mean_ns() * h.requests() as f64, Habit::requests),
            "block read mean" => mean_ms(|h| h.read_ns * h.reads as f64, |h| h.reads),
            "block write mean" => mean_ms(|h| h.write_ns * h.writes as f64, |h| h.writes),
            _ => None,
        }
    }

    /// Returns each metric with its recorded and its simulated value under the same scheduler.
    fn compared<'a>(&self, f: &'a Forecast) -> Vec<(&'a Prediction, f64, f64)> {
        let mut all: Vec<(&Prediction, f64, f64)> = Vec::new();
        for p in f.predictions.iter().filter(|p| p.against_active) {
            let known = all.iter().any(|c| c.0.metric == p.metric);
            let recorded = self.recorded(&p.metric).filter(|x| *x > 0.0);
            if let Some((real, simulated)) = recorded.zip(p.simulated.1).filter(|_| !known) {
                all.push((p, real, simulated));
            }
        }
        all
    }

    /// Returns the recording as text, with the simulated value beside the recorded one.
    pub fn text(&self, f: &Forecast, width: usize) -> String {
        let h = &self.habits;
        let moved =
            |n: u64, what: &str, of: u64| format!("{} {what} ({})", count(n), bytes(of as f64));
        let mut s = wrap(
            &format!(
                "Recorded: {} ran for {} s with exit code {} under {}. It made {} and {} on {}.",
                self.command,
                three(self.seconds),
                self.code,
                in_prose(&self.scheduler),
                moved(h.sum(|h| h.reads), "reads", h.sum(|h| h.read_bytes)),
                moved(h.sum(|h| h.writes), "writes", h.sum(|h| h.write_bytes)),
                self.device,
            ),
            0,
            width,
        );
        s += &self.processes();
        s += &wrap(&self.judged(), 0, width);
        s += &self.check(f, width);
        s += &wrap(NOT_BETTER, 0, width);
        s
    }

    fn processes(&self) -> String {
        let mut t = Table::new(&[
            ("PROCESS", Align::Left),
            ("REQUESTS", Align::Right),
            ("LATENCY", Align::Right),
            ("THINK TIME", Align::Right),
            ("IN FLIGHT", Align::Right),
            ("LOOP", Align::Left),
        ]);
        for h in self.habits.tasks.iter().take(SHOWN) {
            t.row(vec![
                format!("{} {}", h.name, h.task).trim().to_owned().into(),
                count(h.requests()).into(),
                time_ns(h.mean_ns()).into(),
                time_ns(h.think_ns).into(),
                h.depth.to_string().into(),
                if h.open { "open" } else { "closed" }.into(),
            ]);
        }
        let more = self.habits.tasks.len().saturating_sub(SHOWN);
        let mut s = t.render(2);
        if more > 0 {
            s += &format!("  and {more} more processes\n");
        }
        s
    }

    /// Returns how the command is judged.
    fn judged(&self) -> String {
        match self.mode() {
            ReplayMode::AsTimed => "Most requests arrive at their own times (open loop), so \
                                         the command is judged by their latency."
                .to_owned(),
            ReplayMode::Steady => {
                "The command ran for a fixed time, so it is judged by the rate and the \
                          latency of its requests (--ends work: by the time for its work)."
                    .to_owned()
            }
            _ => "The command ended when its work was done, so it is judged by the time \
                           for its requests (--ends time: by their rate and latency)."
                .to_owned(),
        }
    }

    /// Compares the recording with the simulation under the same scheduler.
    fn check(&self, f: &Forecast, width: usize) -> String {
        let all = self.compared(f);
        let mut t = Table::new(&[
            ("UNDER THE SAME SCHEDULER", Align::Left),
            ("RECORDED", Align::Right),
            ("SIMULATED", Align::Right),
        ]);
        for (p, real, simulated) in &all {
            t.row(vec![
                format!("{}, {}", p.metric, p.unit).into(),
                three(*real).into(),
                three(*simulated).into(),
            ]);
        }
        let far = |c: &(&Prediction, f64, f64)| !(1.0 / FAR..=FAR).contains(&(c.2 / c.1));
        let mut s = t.render(2);
        if all.iter().any(far) {
            s += &wrap(
                &format!(
                    "The simulation differs from this disk by more than {FAR} times: do not rely on \
                     the prediction. --calibrate fits the model to the disk."
                ),
                0,
                width,
            );
        }
        s
    }

    /// Returns what the simulation of a recording cannot show.
    pub fn limits(&self) -> Vec<String> {
        let h = &self.habits;
        let mut all = vec![
            "page cache: cached reads, and writes that were not yet on the disk, made no requests"
                .to_owned(),
        ];
        let written = h.sum(|h| h.write_bytes);
        let writeback = h.sum(|h| match h.name.starts_with("kworker") {
            true => h.write_bytes,
            false => 0,
        });
        if 20 * writeback > written {
            all.push(format!(
                "writeback by kernel threads, {} of the written bytes: its timing follows the \
                 scheduler, and the simulation repeats the recorded requests",
                percent(writeback as f64 / written as f64)
            ));
        }
        if self.timed {
            all.push(
                "the end of the recording: the simulation ends when one of the processes that were \
                 active at the end has no more requests"
                    .to_owned(),
            );
        }
        let outside = self.seconds - h.span_ns as f64 / 1e9;
        if self.by_duration() && outside > 0.1 * self.seconds {
            all.push(format!(
                "the time before the first and after the last request: {} s of {} s; RATIO covers \
                 only the rest",
                three(outside),
                three(self.seconds)
            ));
        }
        if h.tasks.len() > 1 {
            all.push(
                "processes that wait for each other or end each other: waits count as think time, \
                 and each process repeats all of its requests"
                    .to_owned(),
            );
        }
        all.push("another run of the command: it makes other requests".to_owned());
        all.push("cgroups: the kernel's tracepoints do not contain them".to_owned());
        if self.lost > 0 {
            all.push(format!("{} events that the kernel lost", self.lost));
        }
        all
    }

    /// Returns the recording as JSON.
    pub fn json(&self, f: &Forecast) -> Value {
        let processes = self.habits.tasks.iter().map(|h| {
            json!({
                "pid": h.task, "name": h.name, "reads": h.reads, "writes": h.writes,
                "read_bytes": h.read_bytes, "write_bytes": h.write_bytes, "mean_ns": h.mean_ns(),
                "think_ns": h.think_ns, "in_flight_max": h.depth, "open": h.open,
            })
        });
        let metrics = self.compared(f).into_iter().map(|(p, real, simulated)| {
            json!({
                "metric": p.metric, "unit": p.unit, "recorded": real, "simulated": simulated,
            })
        });
        json!({
            "command": self.command, "exit_code": self.code, "seconds": self.seconds, "fixed_time": self.timed,
            "mode": self.mode().to_string(), "span_s": self.habits.span_ns as f64 / 1e9,
            "lost": self.lost, "metrics": metrics.collect::<Vec<_>>(),
            "processes": processes.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_running_time_is_found() {
        for (words, ran_s, found) in [
            ("fio -runtime=10 -iodepth=16", 10.4, true),
            ("fio -runtime=10 -iodepth=16", 16.2, false),
            ("fio -runtime=10", 4.0, false),
            ("timeout 5 dd if=/dev/sda", 5.01, true),
            ("pgbench -c 4 -T60 bench", 60.3, true),
            ("wrk -t2 -d 30s url", 30.1, true),
            ("sleepy 2m", 120.1, true),
            ("cp -r a 10", 10.1, false),
            ("[a]\nruntime=3\n", 3.2, true),
            ("dd bs=4k count=2", 2.1, false),
            ("x -é", 2.1, false),
        ] {
            assert_eq!(states_time(words, ran_s), found, "{words} {ran_s}");
        }
    }
}
