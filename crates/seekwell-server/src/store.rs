//! Where the bytes are: anonymous memory, or a sparse file of the user's. Data move at once, in
//! order of arrival; the model only says when that is acknowledged.

use crate::error::ServeError;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of the disk.
pub struct Store {
    file: File,
    durable: bool,
    /// Calls of fdatasync(2) that came back well.
    syncs: AtomicU64,
}

impl Store {
    /// In memory, sparse: what was never written takes no room and reads as zeroes.
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

    /// In a file, made if it does not exist and grown to the size; never cut.
    pub fn file(path: &Path, size: u64) -> Result<Self, ServeError> {
        let bad = |what: String, remedy| ServeError::Backing {
            path: path.to_owned(),
            what,
            remedy,
        };
        let unfit = |e: io::Error| bad(e.to_string(), "name a file you may write");
        // Looked at before it is opened, which some devices take for a sign.
        let before = std::fs::metadata(path);
        if before.as_ref().is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            let remedy =
                "name a plain file: a device of its own timing cannot stand behind a model";
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
            // A new file's name, too: data that are on the medium must be found again.
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
    /// Gives a range back: it reads as zeroes afterwards.
    pub fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, at, len).map_err(io::Error::from)
    }
    /// Does anything outlive the server?
    pub fn durable(&self) -> bool {
        self.durable
    }
    /// What was written is on the medium afterwards.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    /// Calls of fdatasync(2) by [`Store::sync`] that came back well.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
    /// At the end: what the user keeps is on the medium.
    pub fn close(&self) -> io::Result<()> {
        if self.durable {
            self.file.sync_data()
        } else {
            Ok(())
        }
    }
    /// Bytes that take room.
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
