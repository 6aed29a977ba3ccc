//! Job files from command lines: `fio --name=a --rw=read`, and options beside a job file.

use super::FioError;
use super::ignored::setting;
use super::parse::{Outside, flatten, split_option};

/// Options of fio without a value.
const FLAGS: &[&str] = &[
    "append-terse",
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "group_reporting",
    "minimal",
    "new_group",
    "norandommap",
    "parse-only",
    "readonly",
    "refill_buffers",
    "stonewall",
    "thread",
    "time_based",
    "verify_only",
    "wait_for_previous",
    "warnings-fatal",
    "zero_buffers",
];

/// Options of the fio command about its output and its own memory. They are not options of a job.
const OUTPUT: &[&str] = &[
    "alloc-size",
    "append-terse",
    "aux-path",
    "bandwidth-log",
    "debug",
    "eta",
    "eta-interval",
    "eta-newline",
    "idle-prof",
    "inflate-log",
    "kb_base",
    "latency-log",
    "max-jobs",
    "minimal",
    "output",
    "output-format",
    "parse-only",
    "readonly",
    "status-interval",
    "terse-version",
    "warnings-fatal",
];

/// A fio command as a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The text of the jobs that the command describes.
    pub text: String,
    /// The job file that the command names, if any. Its text follows `text`.
    pub file: Option<String>,
}

/// Splits an option of a command line into its name and its value.
fn option(arg: &str) -> Option<(&str, Option<&str>)> {
    let text = arg.strip_prefix("--").or(arg.strip_prefix('-'))?;
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (text, None),
    };
    (!key.is_empty()).then_some((key, value))
}

/// Makes a job file from the arguments of a fio command, with or without the word `fio`.
///
/// # Errors
/// Returns the argument that is not an option of a job.
pub fn command(args: &[String]) -> Result<Command, String> {
    let args = match args.first().map(|a| a.rsplit('/').next().unwrap_or(a)) {
        Some("fio") => &args[1..],
        _ => args,
    };
    let mut made = Command {
        text: "[global]\n".to_owned(),
        file: None,
    };
    let mut named = false;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some((key, value)) = option(arg) else {
            if made.file.is_some() || named {
                return Err(format!(
                    "\"{arg}\": a command has one job file, or jobs with --name"
                ));
            }
            made.file = Some(arg.clone());
            continue;
        };
        let value = match value {
            None if !FLAGS.contains(&key) => {
                let next = rest.next().map(String::as_str);
                Some(next.ok_or_else(|| format!("{arg} needs a value; write {arg}=VALUE"))?)
            }
            value => value,
        };
        if value.is_some_and(|v| v.contains(['\n', '\r'])) {
            return Err(format!("--{key}: the value has more than one line"));
        }
        match (key, value) {
            ("name", Some("global")) => made.text.push_str("[global]\n"),
            ("name", Some(name)) if !name.contains(']') => {
                if made.file.is_some() {
                    return Err(format!(
                        "{arg}: a command has one job file, or jobs with --name"
                    ));
                }
                named = true;
                made.text.push_str(&format!("[{name}]\n"));
            }
            ("client" | "server" | "remote-config" | "section" | "profile", _) => {
                return Err(format!("--{key} is not supported: remove it"));
            }
            (key, _) if OUTPUT.contains(&key) && key != "kb_base" => {}
            (key, Some(value)) => made.text.push_str(&format!("{key}={value}\n")),
            (key, None) => made.text.push_str(&format!("{key}\n")),
        }
    }
    if !named && made.file.is_none() {
        return Err("the command has no job: add --name=NAME, or a job file".to_owned());
    }
    Ok(made)
}

/// Returns the text of a job file in which options have other values, in every job. Each option is
/// NAME=VALUE, or NAME alone. The included files become part of the text.
///
/// # Errors
/// Returns faults of the job file and of its included files.
pub fn with_options(
    name: &str,
    text: &str,
    outside: &dyn Outside,
    options: &[String],
) -> Result<String, FioError> {
    let mut lines = Vec::new();
    flatten(name, text, outside, 0, &mut 0, &mut lines)?;
    let replaced: Vec<&str> = options.iter().map(|o| setting(split_option(o).0)).collect();
    let mut out = String::from("[global]\n");
    for option in options {
        out.push_str(option);
        out.push('\n');
    }
    for line in &lines {
        let section = line.text.starts_with('[');
        if section || !replaced.contains(&setting(split_option(&line.text).0)) {
            out.push_str(&line.text);
            out.push('\n');
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn a_command_has_the_jobs_of_its_names() {
        let made = command(&words(
            "fio --rw=read --size=1m -direct=1 --iodepth 4 --name=a --bs=8k --name b -thread",
        ));
        let text = made.expect("jobs").text;
        assert_eq!(
            text,
            "[global]\nrw=read\nsize=1m\ndirect=1\niodepth=4\n[a]\nbs=8k\n[b]\nthread\n"
        );
        let file = parse("command", &text, &none).expect("fits");
        assert_eq!(file.jobs.len(), 2);
        assert_eq!(
            (file.jobs[0].blocks[0].min(), file.jobs[1].blocks[0].min()),
            (8192, 4096)
        );
        assert!(file.jobs.iter().all(|j| j.direct && j.depth == 1));
    }

    #[test]
    fn options_of_the_output_are_left_out() {
        let made = command(&words(
            "--name=a --size=1m --output=x.json --output-format json --minimal",
        ));
        assert_eq!(made.expect("a job").text, "[global]\n[a]\nsize=1m\n");
    }

    #[test]
    fn a_command_can_name_a_job_file() {
        let made = command(&words("/usr/bin/fio --size=1m a.fio")).expect("a file");
        assert_eq!(made.file.as_deref(), Some("a.fio"));
        assert_eq!(made.text, "[global]\nsize=1m\n");
        for (bad, why) in [
            ("fio", "has no job"),
            ("fio --rw=read", "has no job"),
            ("fio --name", "needs a value"),
            ("fio a.fio b.fio", "one job file"),
            ("fio a.fio --name=b", "one job file"),
            ("fio --client=host a.fio", "not supported"),
        ] {
            let e = command(&words(bad)).expect_err(bad);
            assert!(e.contains(why), "{bad}: {e}");
        }
    }

    #[test]
    fn options_beside_a_job_file_hold_in_every_job() {
        let text = "[global]\nbs=4k\n[a]\nbsrange=4k-8k\nsize=1m\n[b]\nsize=2m\nbuffered=1\n";
        let options = ["bs=16k", "size=64k", "direct=1"].map(str::to_owned);
        let text = with_options("a.fio", text, &none, &options).expect("fits");
        let file = parse("a.fio", &text, &none).expect("fits");
        for job in &file.jobs {
            assert_eq!((job.blocks[0].min(), job.blocks[0].max()), (16384, 16384));
            assert_eq!((job.each(), job.direct), (65536, true));
        }
        assert_eq!(file.warnings, Vec::<String>::new());
    }
}
