//! Stores the data of the disk in anonymous memory, or in a sparse file of the user. The data are
//! moved immediately, in order of arrival. The model only decides when the command is acknowledged.

use crate::error::ServeError;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Storage for the data of the disk.
pub struct Store {
    file: File,
    durable: bool,
    /// Number of successful fdatasync(2) calls.
    syncs: AtomicU64,
}

impl Store {
    /// Creates a store in sparse memory. Ranges that were not written take no space and contain
    /// zeroes.
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

    /// Creates a store in a file. The file is created if necessary and extended to `size`. It is
    /// never truncated.
    pub fn file(path: &Path, size: u64) -> Result<Self, ServeError> {
        let bad = |what: String, remedy| ServeError::Backing {
            path: path.to_owned(),
            what,
            remedy,
        };
        let unfit = |e: io::Error| bad(e.to_string(), "give a file that you may write");
        // The type is checked before the file is opened, because opening a device can have side
        // effects.
        let before = std::fs::metadata(path);
        if before.as_ref().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            let remedy = "give a regular file: a device would add its own latency to the model's";
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
                .map_err(|e| bad(e.to_string(), "free some space, or choose a smaller --size"))?;
        }
        if before.is_err() {
            // The directory entry of a new file is synced too, so that its data can be found after
            // a crash.
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

    /// Fills `buf` with the data at byte `at`.
    pub fn read(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buf, at)
    }
    /// Writes `data` at byte `at`.
    pub fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, at)
    }
    /// Deallocates a range of bytes. The range then contains zeroes.
    pub fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, at, len).map_err(io::Error::from)
    }
    /// Returns whether the data remain after the server has ended.
    pub fn durable(&self) -> bool {
        self.durable
    }
    /// Makes all written data durable by fdatasync(2).
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    /// Returns the number of successful fdatasync(2) calls by [`Store::sync`].
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
    /// Makes the data in a backing file durable. It is called at the end.
    pub fn close(&self) -> io::Result<()> {
        if self.durable {
            self.file.sync_data()
        } else {
            Ok(())
        }
    }
    /// Returns the number of allocated bytes.
    pub fn used_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.blocks() * 512)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritten_bytes_are_zero_and_use_no_memory() {
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
    fn only_a_regular_file_can_back_a_model() {
        let dir = std::env::temp_dir();
        let e = Store::file(&dir, 4096)
            .err()
            .expect("a directory")
            .to_string();
        assert!(e.contains("give a file that you may write"), "{e}");
        let e = Store::file(Path::new("/dev/null"), 4096)
            .err()
            .expect("a device");
        assert!(e.to_string().contains("not a plain file"), "{e}");
    }
}
