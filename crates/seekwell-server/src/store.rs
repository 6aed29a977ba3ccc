//! The data: in anonymous memory, or in a sparse file of the user. Data move at once, in order of
//! arrival; the model only decides when that is acknowledged.

use crate::error::ServeError;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The data of the disk.
pub struct Store {
    file: File,
    durable: bool,
    /// Number of successful fdatasync(2) calls.
    syncs: AtomicU64,
}

impl Store {
    /// In sparse memory: unwritten ranges take no space and read as zeroes.
    pub fn memory(size: u64) -> Result<Self, ServeError> {
        let system = |source| ServeError::System {
            what: "no memory for the disk's data",
            source,
        };
        let fd =
            memfd_create("seekwell-disk", MemfdFlags::CLOEXEC).map_err(|e| system(e.into()))?;
        let file = File::from(fd);
        file.set_len(size).map_err(system)?;
        Ok(Store {
            file,
            durable: false,
            syncs: AtomicU64::new(0),
        })
    }

    /// In a file, which is created if necessary and extended to the size, but never truncated.
    pub fn file(path: &Path, size: u64) -> Result<Self, ServeError> {
        let bad = |what: String, remedy| ServeError::Backing {
            path: path.to_owned(),
            what,
            remedy,
        };
        let unfit = |e: io::Error| bad(e.to_string(), "name a file you may write");
        // Checked before it is opened: opening has side effects on some devices.
        let before = std::fs::metadata(path);
        if before.as_ref().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            let remedy = "name a plain file: a device would add its own timing to the model's";
            return Err(bad("is not a plain file".into(), remedy));
        }
        let open = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = open.map_err(unfit)?;
        let meta = file.metadata().map_err(unfit)?;
        if meta.len() < size {
            file.set_len(size)
                .map_err(|e| bad(e.to_string(), "make room, or choose a smaller --size"))?;
        }
        if before.is_err() {
            // Syncs the directory entry of a new file too, so that durable data can be found again.
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
            let dir = File::open(parent.unwrap_or(Path::new(".")));
            file.sync_all()
                .and_then(|()| dir?.sync_all())
                .map_err(unfit)?;
        }
        Ok(Store {
            file,
            durable: true,
            syncs: AtomicU64::new(0),
        })
    }

    /// Fills `buf` from `at`.
    pub fn read(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buf, at)
    }
    /// Writes `data` at `at`.
    pub fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, at)
    }
    /// Deallocates a range, which reads as zeroes afterwards.
    pub fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, at, len).map_err(io::Error::from)
    }
    /// Whether the data outlive the server.
    pub fn durable(&self) -> bool {
        self.durable
    }
    /// Makes the written data durable.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    /// Number of successful fdatasync(2) calls by [`Store::sync`].
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
    /// At the end: makes the user's data durable.
    pub fn close(&self) -> io::Result<()> {
        if self.durable {
            self.file.sync_data()
        } else {
            Ok(())
        }
    }
    /// Allocated bytes.
    pub fn used_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.blocks() * 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritten_bytes_are_zero_and_cost_nothing() {
        let s = Store::memory(1 << 40).expect("memory");
        let mut buf = [1; 4096];
        s.read(1 << 39, &mut buf).expect("read");
        assert_eq!(buf, [0; 4096]);
        assert_eq!(s.used_bytes(), 0);
        s.write(1 << 39, &[7; 4096]).expect("write");
        s.read(1 << 39, &mut buf).expect("read");
        assert_eq!(buf, [7; 4096]);
        assert_eq!(s.used_bytes(), 4096);
        s.punch(1 << 39, 4096).expect("punch");
        s.read(1 << 39, &mut buf).expect("read");
        assert_eq!((buf, s.used_bytes()), ([0; 4096], 0));
    }

    #[test]
    fn only_a_plain_file_stands_behind_a_model() {
        let dir = std::env::temp_dir();
        let e = Store::file(&dir, 4096)
            .err()
            .expect("a directory")
            .to_string();
        assert!(e.contains("name a file you may write"), "{e}");
        let e = Store::file(Path::new("/dev/null"), 4096)
            .err()
            .expect("a device");
        assert!(e.to_string().contains("not a plain file"), "{e}");
    }
}
