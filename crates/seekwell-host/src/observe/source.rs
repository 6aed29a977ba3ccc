//! Where a metric of the user comes from.

use super::user::{MetricError, wrong};
use regex_lite::Regex;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};
use seekwell_core::foreign::plain;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for a command or an endpoint.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes that are read from an endpoint or from a log at once.
const MOST: u64 = 16 << 20;
const LOOK: Duration = Duration::from_millis(10);

/// A source of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A shell command that prints a number.
    Command(String),
    /// A Prometheus endpoint: host and port, path, name of the series, and labels that must occur.
    Http {
        host: String,
        path: String,
        series: String,
        labels: Vec<String>,
    },
    /// A log file and a regular expression with one group.
    Log(PathBuf, String),
}

impl Source {
    pub fn parse(text: &str) -> Result<Source, MetricError> {
        if let Some(rest) = text.strip_prefix("http://") {
            let (url, series) = rest
                .split_once(char::is_whitespace)
                .ok_or_else(|| wrong("the address needs a SERIES after it"))?;
            let (host, path) = url.split_once('/').unwrap_or((url, "metrics"));
            let host = match host.contains(':') {
                true => host.to_owned(),
                false => format!("{host}:80"),
            };
            let (series, labels) = match series.trim().split_once('{') {
                Some((name, rest)) => (name, rest.trim_end_matches('}')),
                None => (series.trim(), ""),
            };
            let labels = self::labels(labels).into_iter();
            return Ok(Source::Http {
                host,
                path: format!("/{path}"),
                series: series.to_owned(),
                labels: labels.map(str::to_owned).collect(),
            });
        }
        if let Some(rest) = text.strip_prefix("log:") {
            let (file, regex) = rest
                .split_once(char::is_whitespace)
                .ok_or_else(|| wrong("the log file needs a REGEX after it"))?;
            let regex = regex.trim();
            let parsed = Regex::new(regex).map_err(|e| wrong(format!("\"{regex}\": {e}")))?;
            if parsed.captures_len() == 1 {
                return Err(wrong(format!(
                    "\"{regex}\" has no group: put the number into parentheses, ([0-9.]+)"
                )));
            }
            return Ok(Source::Log(PathBuf::from(file), regex.to_owned()));
        }
        match text {
            "" => Err(wrong("the source is empty")),
            line => Ok(Source::Command(line.to_owned())),
        }
    }

    /// Returns a name for tables.
    pub fn short_name(&self) -> String {
        match self {
            Source::Command(line) => plain(line).chars().take(40).collect(),
            Source::Http { series, .. } => series.clone(),
            Source::Log(file, _) => {
                let name = file.file_name().unwrap_or_default();
                plain(&name.to_string_lossy())
            }
        }
    }

    /// Returns whether the source gives several numbers at once, which are averaged.
    pub fn averages(&self) -> bool {
        matches!(self, Source::Log(..))
    }

    /// Reads the number.
    pub fn read(&self) -> Result<f64, MetricError> {
        match self {
            Source::Command(line) => command(line, PATIENCE),
            Source::Http {
                host,
                path,
                series,
                labels,
            } => {
                let page = get(host, path, PATIENCE)?;
                let found = sum(&page, series, labels);
                found.ok_or_else(|| wrong(format!("the page has no series \"{series}\"")))
            }
            Source::Log(..) => Err(wrong("a log is read line by line")),
        }
    }

    /// Returns the length of the log, bytes. `None` for other sources.
    pub fn log_length(&self) -> Option<Result<u64, MetricError>> {
        let Source::Log(file, _) = self else {
            return None;
        };
        let length = std::fs::metadata(file).map(|m| m.len());
        Some(length.map_err(|e| wrong(format!("{}: {e}", file.display()))))
    }

    /// Returns the sum and the count of the numbers in the lines after `offset`, and moves it. A log
    /// that became shorter is read from its start.
    pub fn new_lines(&self, offset: &mut u64) -> Result<Option<(f64, f64)>, MetricError> {
        let Source::Log(file, regex) = self else {
            return Ok(None);
        };
        let said = |e: std::io::Error| wrong(format!("{}: {e}", file.display()));
        let mut open = File::open(file).map_err(said)?;
        if open.metadata().map_err(said)?.len() < *offset {
            *offset = 0;
        }
        open.seek(SeekFrom::Start(*offset)).map_err(said)?;
        let mut bytes = Vec::new();
        open.take(MOST).read_to_end(&mut bytes).map_err(said)?;
        // The last line may be incomplete, so it is read again later.
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        *offset += match (whole, bytes.len() as u64) {
            (0, MOST) => MOST,
            (whole, _) => whole as u64,
        };
        let text = String::from_utf8_lossy(&bytes[..whole]);
        let regex = Regex::new(regex).map_err(|e| wrong(e.to_string()))?;
        let found = text.lines().filter_map(|l| {
            let number: f64 = regex.captures(l)?.get(1)?.as_str().parse().ok()?;
            number.is_finite().then_some(number)
        });
        let (sum, n) = found.fold((0.0, 0.0), |(sum, n), v| (sum + v, n + 1.0));
        Ok((n > 0.0).then_some((sum, n)))
    }
}

/// A file in memory for the output of a command. A pipe would fill up, and a background process of
/// the command could keep it open.
fn memory_file() -> std::io::Result<File> {
    Ok(File::from(memfd_create("output", MemfdFlags::CLOEXEC)?))
}

/// Returns what a command wrote to a file.
fn written(mut file: File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind();
    let _ = file.take(MOST).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs a shell command and returns the last number that it prints. The command has its own process
/// group, so that Ctrl-C does not reach it, and so that a timeout ends all of its processes.
fn command(line: &str, patience: Duration) -> Result<f64, MetricError> {
    let cannot = |e: std::io::Error| wrong(e.to_string());
    let (out, err) = (
        memory_file().map_err(cannot)?,
        memory_file().map_err(cannot)?,
    );
    let mut child = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(cannot)?)
        .stderr(err.try_clone().map_err(cannot)?)
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let end = Instant::now() + patience;
    let status = loop {
        match child.try_wait().map_err(cannot)? {
            Some(status) => break status,
            None if Instant::now() < end => std::thread::sleep(LOOK),
            None => {
                let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                let _ = group.map(|g| kill_process_group(g, Signal::KILL));
                let _ = child.wait();
                return Err(wrong(format!(
                    "the command did not end within {} s",
                    patience.as_secs()
                )));
            }
        }
    };
    let printed = written(out);
    if !status.success() {
        let why = written(err);
        let last = why.lines().rfind(|l| !l.trim().is_empty());
        return Err(wrong(format!(
            "the command ended with {status}: {}",
            plain(last.unwrap_or("no message"))
        )));
    }
    let words = printed.split_whitespace().rev();
    let found = words.filter_map(|w| w.parse::<f64>().ok());
    let mut finite = found.filter(|v| v.is_finite());
    finite.next().ok_or_else(|| {
        let start: String = plain(printed.trim()).chars().take(60).collect();
        wrong(format!("the command printed no number: \"{start}\""))
    })
}

/// Gets a page of plain HTTP. A library for HTTP would double the dependencies of this crate for
/// one request without redirects, encryption or chunks (HTTP/1.0 has none).
fn get(host: &str, path: &str, patience: Duration) -> Result<String, MetricError> {
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => wrong(format!(
            "{host}: no complete answer within {} s",
            patience.as_secs()
        )),
        _ => wrong(format!("{host}: {e}")),
    };
    let end = Instant::now() + patience;
    // A timeout of 0 would be an error, and would mean no timeout for a read.
    let left = || (end - Instant::now().min(end)).max(Duration::from_millis(1));
    let mut stream = Err(wrong(format!("{host}: unknown host")));
    for address in host.to_socket_addrs().map_err(failed)? {
        stream = TcpStream::connect_timeout(&address, left()).map_err(failed);
        if stream.is_ok() {
            break;
        }
    }
    let mut stream = stream?;
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n"
    );
    stream.set_write_timeout(Some(left())).map_err(failed)?;
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 16];
    // A server that sends slowly must not hold up the trial, so the timeout is for the whole page.
    while (bytes.len() as u64) < MOST {
        stream.set_read_timeout(Some(left())).map_err(failed)?;
        match stream.read(&mut part).map_err(failed)? {
            0 => break,
            n => bytes.extend_from_slice(&part[..n]),
        }
        if Instant::now() >= end {
            return Err(failed(ErrorKind::TimedOut.into()));
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .ok_or_else(|| wrong(format!("{host}: the answer is not HTTP")))?;
    let status = head.lines().next().unwrap_or_default();
    match status.split_whitespace().nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => Err(wrong(format!("{host}{path}: {}", plain(status)))),
    }
}

/// Splits the labels of a sample, such as `a="x,y",b="z"`. A comma inside quotes separates nothing.
fn labels(text: &str) -> Vec<&str> {
    let (mut all, mut from, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => {
                all.push(text[from..i].trim());
                from = i + 1;
            }
            _ => {}
        }
    }
    all.push(text[from..].trim());
    all.retain(|l| !l.is_empty());
    all
}

/// Returns the sum of all samples of a series in the Prometheus text format
/// (<https://prometheus.io/docs/instrumenting/exposition_formats/>). Each of `labels` must occur.
fn sum(page: &str, series: &str, labels: &[String]) -> Option<f64> {
    let mut total = None;
    for line in page.lines().map(str::trim).filter(|l| !l.starts_with('#')) {
        let end = line.find(['{', ' ', '\t']).unwrap_or(line.len());
        if &line[..end] != series {
            continue;
        }
        let (own, rest) = match line[end..].strip_prefix('{') {
            // Values of labels may contain braces, so the last one ends the labels.
            Some(more) => more.rsplit_once('}')?,
            None => ("", &line[end..]),
        };
        let own = self::labels(own);
        if !labels.iter().all(|l| own.contains(&l.as_str())) {
            continue;
        }
        let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
        if value.is_finite() {
            *total.get_or_insert(0.0) += value;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_samples_of_a_series_are_summed() {
        let page = "# HELP a b\n# TYPE x counter\nx{db=\"one\"} 3\nx{db=\"two\"} 4 1395066363000\n\
                    x_total 9\ny 1.5e3\nz NaN\n";
        assert_eq!(sum(page, "x", &[]), Some(7.0));
        assert_eq!(sum(page, "x", &["db=\"two\"".to_owned()]), Some(4.0));
        assert_eq!(sum(page, "y", &[]), Some(1500.0));
        assert_eq!(sum(page, "z", &[]), None);
        assert_eq!(sum(page, "nothing", &[]), None);
        // A label matches as a whole, not as the end of another name.
        assert_eq!(
            sum("x{mydb=\"two\"} 4\n", "x", &["db=\"two\"".to_owned()]),
            None
        );
        let comma = "x{a=\"1,2\\\"\",db=\"two\"} 4\n";
        assert_eq!(sum(comma, "x", &["db=\"two\"".to_owned()]), Some(4.0));
    }

    #[test]
    fn endpoint_is_read_over_http() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = server.local_addr().expect("bound").port();
        let answers = std::thread::spawn(move || {
            for body in [
                "HTTP/1.0 200 OK\r\n\r\ncommits 41\n",
                "HTTP/1.0 404 Not Found\r\n\r\n",
            ] {
                let (mut stream, _) = server.accept().expect("a client");
                let mut asked = [0; 1024];
                let n = stream.read(&mut asked).expect("a request");
                assert!(asked[..n].starts_with(b"GET /metrics HTTP/1.0\r\n"));
                stream.write_all(body.as_bytes()).expect("sent");
            }
        });
        let source = Source::parse(&format!("http://127.0.0.1:{port}/metrics commits"));
        let source = source.expect("a source");
        assert_eq!(source.read(), Ok(41.0));
        let e = source.read().expect_err("not found").0;
        assert!(e.contains("404"), "{e}");
        answers.join().expect("served");
        let e = source.read().expect_err("closed").0;
        assert!(e.contains("refused"), "{e}");
    }

    #[test]
    fn only_new_and_complete_log_lines_count() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("log");
        std::fs::write(&file, "took=100\n").expect("written");
        let source = Source::parse(&format!("log:{} took=([0-9]+)", file.display()));
        let source = source.expect("a source");
        let mut at = source.log_length().expect("a log").expect("readable");
        let append = |text: &str| {
            let mut f = File::options().append(true).open(&file).expect("open");
            f.write_all(text.as_bytes()).expect("written");
        };
        append("took=4\nother\ntook=8\ntook=1");
        assert_eq!(source.new_lines(&mut at), Ok(Some((12.0, 2.0))));
        append("0\n");
        assert_eq!(source.new_lines(&mut at), Ok(Some((10.0, 1.0))));
        // A rotated log starts again.
        std::fs::write(&file, "took=7\n").expect("written");
        assert_eq!(source.new_lines(&mut at), Ok(Some((7.0, 1.0))));
        assert_eq!(source.new_lines(&mut at), Ok(None));
    }

    #[test]
    fn slow_server_is_given_up_after_the_timeout() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let host = server.local_addr().expect("bound").to_string();
        let slow = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().expect("a client");
            // One byte at a time never completes a page, but each read succeeds.
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(LOOK);
            }
        });
        let e = get(&host, "/metrics", Duration::from_millis(100)).expect_err("too slow");
        assert!(e.0.contains("no complete answer"), "{e}");
        slow.join().expect("ended");
    }

    #[test]
    fn command_must_print_a_number_succeed_and_end() {
        let command = |line: &str| command(line, PATIENCE);
        assert_eq!(command("echo tps 1 then 42.5"), Ok(42.5));
        let e = command("echo none").expect_err("no number").0;
        assert!(e.contains("no number"), "{e}");
        let e = command("echo broken >&2; exit 3").expect_err("failed").0;
        assert!(e.contains("broken"), "{e}");
        // More than a pipe holds, and a background process that keeps the output open.
        assert_eq!(command("seq 100000; sleep 5 & echo 7"), Ok(7.0));
    }

    #[test]
    fn timeout_ends_all_processes_of_a_command() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pid");
        let line = format!("sleep 1000 & echo $! >{}; wait", file.display());
        let e = super::command(&line, Duration::from_secs(2)).expect_err("no end");
        assert!(e.0.contains("did not end"), "{e}");
        let pid = std::fs::read_to_string(file).expect("the process began");
        // A process that was killed may remain as a zombie, because the test is not its parent.
        let runs = || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            state.is_ok_and(|s| !s.contains(") Z") && !s.contains(") X"))
        };
        while runs() {
            std::thread::sleep(LOOK);
        }
    }
}
