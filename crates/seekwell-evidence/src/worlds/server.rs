//! Serves the modelled disk from a separate process. If the current process is killed, the server
//! still completes requests, detaches the loop device and ends.

use super::Options;
use super::WorldsError;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time that the server may need to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `seekwell serve`.
pub struct Server {
    child: Child,
    dir: PathBuf,
}

impl Server {
    /// Starts the server. Its mount point and its statistics are in `dir`.
    pub fn start(a: &Options, dir: &Path) -> Result<Self, WorldsError> {
        let mount = dir.join("fuse");
        std::fs::create_dir_all(&mount).map_err(|e| {
            let path = mount.display();
            WorldsError::input(format!("{path}: {e}; set TMPDIR to another directory"))
        })?;
        let failed = |e: std::io::Error| {
            WorldsError::input(format!(
                "the server of the modelled disk cannot be started: {e}; allow more processes \
                 (ulimit -u)"
            ))
        };
        let mut child = Command::new(&a.program)
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
            // The disk must be removed last, so Ctrl-C on the terminal must not stop its server.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            // The server prints a line when the disk is ready. If the server ends, there is no
            // line.
            let _ = BufReader::new(out).read_line(&mut line);
        }
        if !line.starts_with("serving") {
            let words = child
                .wait_with_output()
                .map(|o| o.stderr)
                .unwrap_or_default();
            let words = String::from_utf8_lossy(&words);
            let words = words.trim().trim_start_matches("error: ");
            return Err(WorldsError::input(match words {
                "" => "the server of the modelled disk ended before the disk was ready".to_owned(),
                words => words.to_owned(),
            }));
        }
        Ok(Server {
            child,
            dir: dir.to_owned(),
        })
    }
    /// Returns the path of the file that represents the disk.
    pub fn file(&self) -> PathBuf {
        self.dir.join("fuse").join(seekwell_server::FILE_NAME)
    }
    /// Ends the server and returns its statistics.
    pub fn stop(mut self) -> Result<Value, WorldsError> {
        self.end();
        let path = self.dir.join("account.json");
        let text = std::fs::read_to_string(&path);
        let value = text.ok().and_then(|t| serde_json::from_str(&t).ok());
        value.ok_or_else(|| {
            let path = path.display();
            WorldsError::input(format!(
                "the modelled disk ended without statistics ({path}): it was killed, or the disk \
                 is full; run it again, or set TMPDIR to another directory"
            ))
        })
    }
    fn end(&mut self) {
        // The server ends when its standard input is closed.
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
