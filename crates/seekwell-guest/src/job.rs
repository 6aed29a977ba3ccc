//! The description of a run that the guest's first process reads: a text file with one item per
//! line, `key value` with the value escaped.

use std::fmt::Write;

/// Path of the run's directory inside the guest.
pub const DIR: &str = "/seekwell";
/// Where the file system of the first disk is mounted.
pub const MOUNT: &str = "/disk";
/// Path of the program that runs the guest, inside the guest.
pub const PROGRAM: &str = "/seekwell/seekwell";

/// What the first process does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Scheduler per disk; empty leaves the kernel's choice.
    pub schedulers: Vec<String>,
    /// Writes to files: path and value. A path without a leading slash is below
    /// `/sys/block/vda/queue`.
    pub writes: Vec<(String, String)>,
    /// Type of the file system on the first disk; empty: no file system.
    pub file_system: String,
    /// Mount options.
    pub mount_options: String,
    /// Virtual time between the mount and the command, ns.
    pub settle_ns: u64,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Additional environment variables.
    pub environment: Vec<(String, String)>,
}

impl Job {
    /// Writes the job as text.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let mut line = |key: &str, value: &str| {
            let value = value.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = writeln!(out, "{key} {value}");
        };
        for s in &self.schedulers {
            line("scheduler", s);
        }
        for (path, value) in &self.writes {
            line("path", path);
            line("value", value);
        }
        line("fs", &self.file_system);
        line("options", &self.mount_options);
        line("settle", &self.settle_ns.to_string());
        for a in &self.command {
            line("arg", a);
        }
        for (name, value) in &self.environment {
            line("env", &format!("{name}={value}"));
        }
        out
    }

    /// Reads the text of [`Job::to_text`].
    pub fn from_text(text: &str) -> Self {
        let mut job = Job::default();
        for l in text.lines() {
            let (key, value) = l.split_once(' ').unwrap_or((l, ""));
            let value = unescape(value);
            match key {
                "scheduler" => job.schedulers.push(value),
                "path" => job.writes.push((value, String::new())),
                "value" => {
                    if let Some(last) = job.writes.last_mut() {
                        last.1 = value;
                    }
                }
                "fs" => job.file_system = value,
                "options" => job.mount_options = value,
                "settle" => job.settle_ns = value.parse().unwrap_or(0),
                "arg" => job.command.push(value),
                "env" => {
                    let pair = value.split_once('=').unwrap_or((&value, ""));
                    job.environment.push((pair.0.to_owned(), pair.1.to_owned()));
                }
                _ => {}
            }
        }
        job
    }
}

fn unescape(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(c) => out.push(c),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_writing_and_reading() {
        let job = Job {
            schedulers: vec!["bfq".into(), "none".into()],
            writes: vec![("iosched/low_latency".into(), "0".into())],
            file_system: "ext4".into(),
            mount_options: "noatime".into(),
            settle_ns: 7,
            command: vec![
                "sh".into(),
                "-c".into(),
                "echo a\\n\nb ".into(),
                String::new(),
            ],
            environment: vec![("A".into(), "b=c".into())],
        };
        assert_eq!(Job::from_text(&job.to_text()), job);
    }
}
