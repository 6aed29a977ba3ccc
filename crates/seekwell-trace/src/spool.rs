//! Stores the data of a stream that can be read only once (standard input or a pipe), so that the
//! stream can be read repeatedly. The data are stored in a temporary file without a name.
//!
//! Data are read from the stream only when a reader needs them. So a replay of the first thousand
//! records of an endless stream ends.

use crate::error::{ErrorKind, Place, Remedied, TraceError};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of bytes that are read from the stream at a time.
const PIECE_BYTES: usize = 256 << 10;

/// A stream and the data that were read from it.
pub struct Spool {
    name: String,
    file: File,
    state: Mutex<State>,
    bytes_max: u64,
}

struct State {
    src: Box<dyn Read + Send>,
    /// Number of bytes in the temporary file.
    len: u64,
    ended: bool,
}

impl Spool {
    /// Makes the temporary file in TMPDIR or /tmp. `name` is the stream's name in messages.
    /// `bytes_max` is the maximum size of the file.
    pub fn new(
        name: &str,
        src: Box<dyn Read + Send>,
        bytes_max: u64,
    ) -> Result<Arc<Spool>, TraceError> {
        let file = tempfile::tempfile().map_err(|e| {
            let place = std::env::temp_dir();
            TraceError::new(
                ErrorKind::Io,
                name,
                Place::File,
                format!("cannot make a temporary file in {}: {e}", place.display()),
                "set TMPDIR to a writable directory, or save the trace to a file",
            )
        })?;
        Ok(Arc::new(Spool {
            name: name.to_owned(),
            file,
            state: Mutex::new(State {
                src,
                len: 0,
                ended: false,
            }),
            bytes_max,
        }))
    }

    /// Returns the name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes a reader that starts at the beginning of the stream.
    pub fn reader(self: &Arc<Self>) -> SpoolReader {
        SpoolReader {
            spool: self.clone(),
            at: 0,
        }
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut s = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if at >= s.len && !s.ended {
            self.take(&mut s)?;
        }
        let have = s.len.saturating_sub(at);
        drop(s);
        let n = buf.len().min(usize::try_from(have).unwrap_or(usize::MAX));
        self.file.read_at(&mut buf[..n], at)
    }

    /// Appends the next piece of the stream to the file.
    fn take(&self, s: &mut State) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        let n = loop {
            match s.src.read(&mut piece) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        s.ended = n == 0;
        if s.len + n as u64 > self.bytes_max {
            return Err(Remedied::error(
                format!("the stream has more than {} GiB", self.bytes_max >> 30),
                "save the trace to a file and use that, or read less with --limit",
            ));
        }
        self.file.write_all_at(&piece[..n], s.len).map_err(|e| {
            let place = std::env::temp_dir();
            Remedied::error(
                format!(
                    "its temporary file in {} cannot be written: {e}",
                    place.display()
                ),
                "set TMPDIR to a directory with more room, or save the trace to a file and use \
                 that",
            )
        })?;
        s.len += n as u64;
        Ok(())
    }
}

/// Reads a [`Spool`] from its beginning, independently of other readers.
pub struct SpoolReader {
    spool: Arc<Spool>,
    at: u64,
}

impl Read for SpoolReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.spool.read_at(self.at, buf)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(bytes_max: u64, src: impl Read + Send + 'static) -> Arc<Spool> {
        Spool::new("pipe", Box::new(src), bytes_max).expect("a temporary file")
    }

    #[test]
    fn every_reader_gets_the_whole_stream() {
        let bytes: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
        let spool = spool(1 << 30, io::Cursor::new(bytes.clone()));
        let (mut a, mut b) = (spool.reader(), spool.reader());
        let mut head = vec![0; 5000];
        a.read_exact(&mut head).expect("bytes");
        assert_eq!(head, bytes[..5000]);
        let mut all = Vec::new();
        b.read_to_end(&mut all).expect("bytes");
        assert_eq!(all, bytes);
        let mut rest = Vec::new();
        a.read_to_end(&mut rest).expect("bytes");
        assert_eq!(rest, bytes[5000..]);
    }

    #[test]
    fn threads_read_the_spool_concurrently() {
        let bytes: Vec<u8> = (0..200_000u32).flat_map(u32::to_be_bytes).collect();
        let spool = spool(1 << 30, io::Cursor::new(bytes.clone()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut all = Vec::new();
                    spool.reader().read_to_end(&mut all).expect("bytes");
                    assert_eq!(all, bytes);
                });
            }
        });
    }

    #[test]
    fn endless_stream_is_read_on_demand_up_to_the_limit() {
        let spool = spool(1 << 20, io::repeat(b'x'));
        let mut few = [0; 10];
        spool.reader().read_exact(&mut few).expect("bytes");
        assert_eq!(few, [b'x'; 10]);
        assert_eq!(spool.state.lock().expect("free").len, PIECE_BYTES as u64);
        let e = spool
            .reader()
            .read_to_end(&mut Vec::new())
            .expect_err("too much");
        assert!(e.to_string().contains("the stream has more than"), "{e}");
    }
}
