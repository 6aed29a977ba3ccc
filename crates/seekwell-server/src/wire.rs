//! The kernel's FUSE protocol, as far as a file system of one file needs it: requests out of
//! bytes, answers into bytes. Layout from `linux/fuse.h` (protocol 7.x; everything in the byte
//! order of the machine). Written here because a crate for all of FUSE is larger than this server.
//!
//! Nothing here panics on any bytes; what is too short is [`Ask::Broken`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Bytes in front of each request.
const IN_HEADER: usize = 40;
/// Room in front of the largest write: header, arguments, and what the kernel may align to.
pub const OVERHEAD: usize = 4096;

/// Flags of INIT.
pub mod init {
    /// Direct requests of one caller may be in flight together: without it depth is 1.
    pub const ASYNC_DIO: u32 = 1 << 15;
    /// Reads may be asynchronous.
    pub const ASYNC_READ: u32 = 1;
    /// Writes larger than a page.
    pub const BIG_WRITES: u32 = 1 << 5;
    /// `max_pages` counts.
    pub const MAX_PAGES: u32 = 1 << 22;
}

/// Flags of an opened file.
pub mod open {
    /// No page cache.
    pub const DIRECT_IO: u32 = 1;
    /// No flush at close.
    pub const NOFLUSH: u32 = 1 << 5;
    /// Direct writes may run side by side.
    pub const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// To be repeated in the answer.
    pub unique: u64,
    /// Which file (1 is the directory).
    pub node: u64,
    /// Thread that asked; 0 if unknown.
    pub pid: u32,
    /// What.
    pub ask: Ask<'a>,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask<'a> {
    /// The beginning: protocol and what the kernel can.
    Init {
        major: u32,
        minor: u32,
        readahead: u32,
        flags: u32,
    },
    /// A name in a directory.
    Lookup(&'a OsStr),
    /// Attributes.
    Getattr,
    /// Changed attributes; a size, if it is among them.
    Setattr { size: Option<u64> },
    /// A file or directory is opened.
    Open,
    /// Bytes.
    Read { at: u64, len: u32 },
    /// Bytes to write, under the open file's flags.
    Write { at: u64, data: &'a [u8], flags: u32 },
    /// Make it durable.
    Fsync,
    /// Reserve, punch or zero.
    Fallocate { at: u64, len: u64, mode: u32 },
    /// Names of the directory from a position on, in so many bytes.
    Readdir { from: u64, len: u32 },
    /// Facts of the file system.
    Statfs,
    /// To be answered with success and nothing else (close, release, access).
    Fine,
    /// Not to be answered (forget, interrupt).
    Silent,
    /// The mount ends.
    Destroy,
    /// Anything else.
    Unknown,
    /// Too short for what it says it is.
    Broken,
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(b.get(at..at + 4)?.try_into().ok()?))
}
fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(b.get(at..at + 8)?.try_into().ok()?))
}

/// Reads a request; `None` if not even its header is whole.
pub fn parse(bytes: &[u8]) -> Option<Asked<'_>> {
    let body = bytes.get(IN_HEADER..)?;
    Some(Asked {
        unique: u64_at(bytes, 8)?,
        node: u64_at(bytes, 16)?,
        pid: u32_at(bytes, 32)?,
        ask: ask(u32_at(bytes, 4)?, body).unwrap_or(Ask::Broken),
    })
}

fn ask(opcode: u32, b: &[u8]) -> Option<Ask<'_>> {
    Some(match opcode {
        1 => {
            let end = b.iter().position(|&c| c == 0)?;
            Ask::Lookup(OsStr::from_bytes(&b[..end]))
        }
        2 | 36 | 42 => Ask::Silent,
        3 => Ask::Getattr,
        4 => {
            const SIZE: u32 = 1 << 3;
            let size = u64_at(b, 16)?;
            Ask::Setattr {
                size: (u32_at(b, 0)? & SIZE != 0).then_some(size),
            }
        }
        14 | 27 => Ask::Open,
        15 => Ask::Read {
            at: u64_at(b, 8)?,
            len: u32_at(b, 16)?,
        },
        16 => {
            let len = u32_at(b, 16)? as usize;
            Ask::Write {
                at: u64_at(b, 8)?,
                flags: u32_at(b, 32)?,
                data: b.get(40..)?.get(..len)?,
            }
        }
        17 => Ask::Statfs,
        18 | 25 | 29 | 34 => Ask::Fine,
        20 => Ask::Fsync,
        26 => Ask::Init {
            major: u32_at(b, 0)?,
            minor: u32_at(b, 4)?,
            readahead: u32_at(b, 8)?,
            flags: u32_at(b, 12)?,
        },
        28 => Ask::Readdir {
            from: u64_at(b, 8)?,
            len: u32_at(b, 16)?,
        },
        38 => Ask::Destroy,
        43 => Ask::Fallocate {
            at: u64_at(b, 8)?,
            len: u64_at(b, 16)?,
            mode: u32_at(b, 24)?,
        },
        _ => Ask::Unknown,
    })
}

/// The bytes of an answer.
#[derive(Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    pub fn u16(mut self, x: u16) -> Self {
        self.0.extend(x.to_ne_bytes());
        self
    }
    pub fn u32(mut self, x: u32) -> Self {
        self.0.extend(x.to_ne_bytes());
        self
    }
    pub fn u64(mut self, x: u64) -> Self {
        self.0.extend(x.to_ne_bytes());
        self
    }
    pub fn zeroes(mut self, n: usize) -> Self {
        self.0.resize(self.0.len() + n, 0);
        self
    }
}

/// Header of an answer of `len` bytes behind it; `errno` 0 is success.
pub fn header(unique: u64, errno: i32, len: usize) -> [u8; 16] {
    let mut h = [0; 16];
    h[..4].copy_from_slice(&(len as u32 + 16).to_ne_bytes());
    h[4..8].copy_from_slice(&(-errno).to_ne_bytes());
    h[8..].copy_from_slice(&unique.to_ne_bytes());
    h
}

/// What INIT is answered with.
pub struct Agreed {
    pub minor: u32,
    pub readahead: u32,
    pub flags: u32,
    pub background: u16,
    pub max_write: u32,
}

/// The answer to INIT.
pub fn init_out(a: &Agreed) -> Bytes {
    let pages = (a.max_write / 4096) as u16;
    Bytes::default()
        .u32(7)
        .u32(a.minor)
        .u32(a.readahead)
        .u32(a.flags)
        .u16(a.background)
        // Congested from three quarters on, as the kernel has it by default.
        .u16(a.background / 4 * 3)
        .u32(a.max_write)
        .u32(1)
        .u16(pages)
        .zeroes(34)
}

/// Attributes of a node.
pub struct Attr {
    pub node: u64,
    pub size: u64,
    pub dir: bool,
    pub owner: (u32, u32),
    pub since_epoch: (u64, u32),
}

/// Seconds the kernel may remember what it was told: nothing ever changes.
const VALID_S: u64 = 3600;
const MODE_DIR: u32 = 0o040_700;
const MODE_FILE: u32 = 0o100_600;

fn attr(b: Bytes, a: &Attr) -> Bytes {
    let (s, ns) = a.since_epoch;
    b.u64(a.node)
        .u64(a.size)
        .u64(a.size / 512)
        .u64(s)
        .u64(s)
        .u64(s)
        .u32(ns)
        .u32(ns)
        .u32(ns)
        .u32(if a.dir { MODE_DIR } else { MODE_FILE })
        .u32(if a.dir { 2 } else { 1 })
        .u32(a.owner.0)
        .u32(a.owner.1)
        .u32(0)
        .u32(4096)
        .u32(0)
}

/// The answer to a lookup.
pub fn entry_out(a: &Attr) -> Bytes {
    let b = Bytes::default()
        .u64(a.node)
        .u64(0)
        .u64(VALID_S)
        .u64(VALID_S);
    attr(b.u32(0).u32(0), a)
}

/// The answer to getattr and setattr.
pub fn attr_out(a: &Attr) -> Bytes {
    attr(Bytes::default().u64(VALID_S).u32(0).u32(0), a)
}

/// The answer to open and opendir.
pub fn open_out(flags: u32) -> Bytes {
    Bytes::default().u64(0).u32(flags).u32(0)
}

/// The answer to a write.
pub fn write_out(bytes: u32) -> Bytes {
    Bytes::default().u32(bytes).u32(0)
}

/// The answer to statfs, in blocks of 4 KiB.
pub fn statfs_out(blocks: u64, free: u64) -> Bytes {
    let b = Bytes::default()
        .u64(blocks)
        .u64(free)
        .u64(free)
        .u64(1)
        .u64(0);
    b.u32(4096).u32(255).u32(4096).u32(0).zeroes(24)
}

/// Appends a directory entry that ends at position `next`; false if it does not fit into `max`.
pub fn dirent(out: &mut Bytes, max: usize, node: u64, next: u64, dir: bool, name: &str) -> bool {
    const DT_DIR: u32 = 4;
    const DT_REG: u32 = 8;
    let padded = name.len().next_multiple_of(8);
    if out.0.len() + 24 + padded > max {
        return false;
    }
    let b = Bytes(std::mem::take(&mut out.0)).u64(node).u64(next);
    let mut b = b
        .u32(name.len() as u32)
        .u32(if dir { DT_DIR } else { DT_REG });
    b.0.extend(name.as_bytes());
    *out = b.zeroes(padded - name.len());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(opcode: u32, body: &[u8]) -> Vec<u8> {
        let len = (IN_HEADER + body.len()) as u32;
        let head = Bytes::default().u32(len).u32(opcode).u64(77).u64(2);
        let mut b = head.u32(0).u32(0).u32(4242).u32(0);
        b.0.extend(body);
        b.0
    }

    #[test]
    fn a_write_is_read_whole_or_not_at_all() {
        let body = Bytes::default()
            .u64(0)
            .u64(8192)
            .u32(4)
            .u32(1)
            .u64(0)
            .u32(0o10_000)
            .u32(0);
        let mut bytes = request(16, &body.0);
        assert_eq!(parse(&bytes).map(|a| a.ask), Some(Ask::Broken));
        bytes.extend(b"data");
        let a = parse(&bytes).expect("whole");
        assert_eq!((a.unique, a.node, a.pid), (77, 2, 4242));
        let want = Ask::Write {
            at: 8192,
            data: b"data",
            flags: 0o10_000,
        };
        assert_eq!(a.ask, want);
    }

    #[test]
    fn answers_have_the_kernels_lengths() {
        let a = Attr {
            node: 2,
            size: 1 << 30,
            dir: false,
            owner: (0, 0),
            since_epoch: (0, 0),
        };
        let agreed = Agreed {
            minor: 31,
            readahead: 0,
            flags: 0,
            background: 256,
            max_write: 1 << 20,
        };
        assert_eq!(init_out(&agreed).0.len(), 64);
        assert_eq!(entry_out(&a).0.len(), 128);
        assert_eq!(attr_out(&a).0.len(), 104);
        assert_eq!(open_out(0).0.len(), 16);
        assert_eq!(statfs_out(1, 1).0.len(), 80);
        assert_eq!(header(5, 2, 0)[4..8], (-2i32).to_ne_bytes());
        let mut d = Bytes::default();
        assert!(dirent(&mut d, 32, 2, 3, false, "disk"));
        assert!(!dirent(&mut d, 32, 2, 3, false, "disk"));
        assert_eq!(d.0.len(), 32);
    }

    proptest! {
        /// Any bytes are a request, or broken, or nothing; never a panic.
        #[test]
        fn any_bytes(opcode in 0u32..60, body in proptest::collection::vec(any::<u8>(), 0..200),
                     cut in 0usize..260) {
            let bytes = request(opcode, &body);
            let bytes = &bytes[..cut.min(bytes.len())];
            let asked = parse(bytes);
            prop_assert_eq!(asked.is_some(), bytes.len() >= IN_HEADER);
            if let Some(Asked { ask: Ask::Write { data, .. }, .. }) = asked {
                prop_assert!(data.len() <= body.len());
            }
        }
    }
}
