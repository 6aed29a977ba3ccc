//! Reads `trace_pipe` in a thread during the run.

use super::WatchError;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval between reads. The buffer has room for the events of several seconds, and infrequent
/// reads disturb the run less.
const LOOK: Duration = Duration::from_millis(100);
/// Size of the read buffer, bytes. The kernel returns one page at a time.
const CHUNK: usize = 64 << 10;

/// A pipe that a thread reads.
#[derive(Debug)]
pub struct Pipe {
    path: PathBuf,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<Vec<u8>>>>,
}

/// Reads until `over` is set and the pipe is empty. Returns the text.
fn drain(mut file: File, over: &AtomicBool) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        // The flag is read before the pipe, so that text written before the flag was set is still
        // read.
        let last = over.load(Ordering::Acquire);
        loop {
            match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => text.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        if last {
            return Ok(text);
        }
        std::thread::park_timeout(LOOK);
    }
}

impl Pipe {
    /// Opens the pipe and starts the thread.
    pub fn open(path: &Path) -> Result<Self, WatchError> {
        let failed = |source, remedy| WatchError::File {
            path: path.to_owned(),
            source,
            remedy,
        };
        let mut how = File::options();
        let file = how.read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(|e| failed(e, "root is needed"))?;
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = std::thread::Builder::new()
            .name("seekwell-trace".to_owned())
            .spawn(move || drain(file, &told))
            .map_err(|e| failed(e, "a thread is needed to read it: allow more (ulimit -u)"))?;
        Ok(Pipe {
            path: path.to_owned(),
            over,
            thread: Some(thread),
        })
    }

    fn wait(&mut self) -> Option<std::io::Result<Vec<u8>>> {
        let thread = self.thread.take()?;
        self.over.store(true, Ordering::Release);
        thread.thread().unpark();
        thread.join().ok()
    }

    /// Ends the thread and returns the text.
    pub fn end(mut self) -> Result<String, WatchError> {
        let text = self.wait().unwrap_or_else(|| Ok(Vec::new()));
        let text = text.map_err(|source| WatchError::File {
            path: self.path.clone(),
            source,
            remedy: "the trace is lost: run it again",
        })?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn late_trace_output_is_read() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let fd = std::os::fd::OwnedFd::from(reader);
        rustix::io::ioctl_fionbio(&fd, true).expect("nonblocking");
        let over = AtomicBool::new(false);
        let text = std::thread::scope(|s| {
            let t = s.spawn(|| drain(File::from(fd), &over));
            writer.write_all(b"one\n").expect("written");
            std::thread::sleep(2 * LOOK);
            writer.write_all(b"two\n").expect("written");
            over.store(true, Ordering::Release);
            t.join().expect("no panic").expect("read")
        });
        assert_eq!(text, b"one\ntwo\n");
    }

    #[test]
    fn missing_trace_pipe_is_named() {
        let e = Pipe::open(Path::new("/nowhere/trace_pipe")).expect_err("not there");
        assert!(e.to_string().starts_with("/nowhere/trace_pipe: "), "{e}");
    }
}
