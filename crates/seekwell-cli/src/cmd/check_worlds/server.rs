//! The modelled disk in a process of its own: if this one dies, that one still answers, lets go of
//! everything above it, and ends.

use crate::cli::CheckWorlds;
use crate::fail::Failure;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to say goodbye.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `seekwell serve`.
pub struct Server {
    child: Child,
    dir: PathBuf,
}

impl Server {
    /// Starts it, with its mount and its account under `dir`.
    pub fn start(a: &CheckWorlds, dir: &Path) -> Result<Self, Failure> {
        let mount = dir.join("fuse");
        let failed = |e: std::io::Error| Failure::input(format!("{}: {e}", mount.display()));
        std::fs::create_dir_all(&mount).map_err(failed)?;
        let exe = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(exe)
            .args(["--quiet", "serve", "--json", "--until-eof", "--fuse"])
            .arg(&mount)
            .args(["--device", &a.device])
            .args(["--size", &a.size.to_string()])
            .args(["--seed", &a.seed.to_string()])
            .arg("--output")
            .arg(dir.join("account.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            // It says one line when it serves, or ends.
            let _ = BufReader::new(out).read_line(&mut line);
        }
        if !line.starts_with("serving") {
            let words = child
                .wait_with_output()
                .map(|o| o.stderr)
                .unwrap_or_default();
            let words = String::from_utf8_lossy(&words);
            let words = words.trim().trim_start_matches("error: ");
            return Err(Failure::input(words.to_owned()));
        }
        Ok(Server {
            child,
            dir: dir.to_owned(),
        })
    }
    /// The file to attach to.
    pub fn file(&self) -> PathBuf {
        self.dir.join("fuse").join(seekwell_server::FILE_NAME)
    }
    /// Ends it and gives its account.
    pub fn stop(mut self) -> Result<Value, Failure> {
        self.end();
        let path = self.dir.join("account.json");
        let text = std::fs::read_to_string(&path);
        let value = text.ok().and_then(|t| serde_json::from_str(&t).ok());
        value.ok_or_else(|| Failure::input("the modelled disk left no account".to_owned()))
    }
    fn end(&mut self) {
        // The end of its input is the sign.
        drop(self.child.stdin.take());
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}
