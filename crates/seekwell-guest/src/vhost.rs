//! One disk's connection to the guest: the vhost-user protocol with in-band notifications.

use crate::disk::{Finished, GuestDisk};
use crate::error::GuestError;
use crate::memory::Mapping;
use crate::queue::Queue;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

const VERSION: u32 = 1;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;
const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const SET_OWNER: u32 = 3;
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_ADDR: u32 = 9;
const SET_VRING_BASE: u32 = 10;
const GET_PROTOCOL_FEATURES: u32 = 15;
const SET_PROTOCOL_FEATURES: u32 = 16;
const GET_QUEUE_NUM: u32 = 17;
const SET_VRING_ENABLE: u32 = 18;
const SET_BACKEND_REQ_FD: u32 = 21;
const GET_CONFIG: u32 = 24;
const SET_CONFIG: u32 = 25;
const VRING_KICK: u32 = 35;
/// Request of the device to the guest: a queue has used buffers.
const BACKEND_VRING_CALL: u32 = 4;

/// REPLY_ACK, SLAVE_REQ, CONFIG and INBAND_NOTIFICATIONS. Without the last one, the guest would use
/// signals, whose time is not virtual.
const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;
/// INDIRECT_DESC, VHOST_USER_F_PROTOCOL_FEATURES, VERSION_1.
const FEATURES: u64 = 1 << 28 | 1 << 30 | 1 << 32;
/// Largest payload that is accepted.
const PAYLOAD_MAX: usize = 4096;
/// Flag of the available ring: the driver asks for no call.
const NO_CALL: u16 = 1;

/// What a message requires of the controller.
#[derive(Debug, PartialEq, Eq)]
pub enum Served {
    /// Nothing; it was answered if it needs an answer.
    Answered,
    /// The guest has submitted requests. The controller must set the time up to which the guest may
    /// run, and then call [`Connection::confirm`].
    Kicked,
    /// The guest has closed the connection.
    Closed,
}

struct Region {
    guest: u64,
    user: u64,
    size: u64,
    offset: u64,
}

/// The connection of one disk.
pub struct Connection {
    listener: UnixListener,
    /// The connection, once the guest's driver has made it.
    socket: Option<UnixStream>,
    /// The channel for requests to the guest.
    back: Option<UnixStream>,
    memory: Option<Mapping>,
    region: Option<Region>,
    queue: Queue,
    disk: GuestDisk,
    finished: Vec<Finished>,
    /// Request and flags of a kick that waits for its confirmation.
    kick_needs_reply: bool,
}

impl Connection {
    /// Returns a disk that waits for the guest's driver.
    pub fn new(listener: UnixListener, disk: GuestDisk) -> Self {
        Connection {
            listener,
            socket: None,
            back: None,
            memory: None,
            region: None,
            queue: Queue::default(),
            disk,
            finished: Vec::new(),
            kick_needs_reply: false,
        }
    }
    /// Returns the descriptor on which the next message or connection arrives, for poll(2).
    pub fn socket(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Some(s) => s.as_fd(),
            None => self.listener.as_fd(),
        }
    }
    /// Returns the channel on which the guest answers a call.
    pub fn back(&self) -> Option<&UnixStream> {
        self.back.as_ref()
    }
    /// Returns the disk at the end of the run.
    pub fn into_disk(self) -> GuestDisk {
        self.disk
    }
    /// Returns the virtual time of the next event, ns. Finished requests that the guest does not
    /// know yet are an event at time 0.
    pub fn next_event(&self) -> Option<u64> {
        if !self.finished.is_empty() {
            return Some(0);
        }
        self.disk.next_event()
    }

    /// Reads one message and acts on it at virtual time `now`.
    pub fn receive(&mut self, now: u64) -> Result<Served, GuestError> {
        let Some(socket) = &mut self.socket else {
            let accepted = self.listener.accept();
            let (s, _) = accepted.map_err(GuestError::host("accept the guest's disk driver"))?;
            self.socket = Some(s);
            return Ok(Served::Answered);
        };
        let mut head = [0u8; 12];
        let (n, fds) = read_with_fds(socket, &mut head)?;
        if n == 0 || socket.read_exact(&mut head[n..]).is_err() {
            return Ok(Served::Closed);
        }
        let word = |i: usize| u32::from_ne_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
        let (request, flags, size) = (word(0), word(4), word(8) as usize);
        if size > PAYLOAD_MAX {
            return Err(GuestError::disk(format!(
                "message {request} with {size} bytes"
            )));
        }
        let mut payload = vec![0u8; size];
        if socket.read_exact(&mut payload).is_err() {
            return Ok(Served::Closed);
        }
        let needs_reply = flags & NEED_REPLY != 0;
        match request {
            GET_FEATURES => self.reply_u64(request, FEATURES | self.disk.features())?,
            GET_PROTOCOL_FEATURES => self.reply_u64(request, PROTOCOL_FEATURES)?,
            GET_QUEUE_NUM => self.reply_u64(request, 1)?,
            GET_CONFIG => self.reply_config(&payload)?,
            VRING_KICK => {
                self.take_requests(now)?;
                self.kick_needs_reply = needs_reply;
                return Ok(Served::Kicked);
            }
            _ => {
                self.set(request, &payload, fds)?;
                if needs_reply {
                    self.reply_u64(request, 0)?;
                }
            }
        }
        Ok(Served::Answered)
    }

    /// Answers a kick.
    pub fn confirm(&mut self) -> Result<(), GuestError> {
        if std::mem::take(&mut self.kick_needs_reply) {
            self.reply_u64(VRING_KICK, 0)?;
        }
        Ok(())
    }

    fn set(&mut self, request: u32, p: &[u8], mut fds: Vec<OwnedFd>) -> Result<(), GuestError> {
        let index = || number(p, 0, 4);
        match request {
            SET_OWNER | SET_FEATURES | SET_PROTOCOL_FEATURES | SET_CONFIG => {}
            SET_MEM_TABLE => self.map(p, &fds)?,
            SET_BACKEND_REQ_FD => {
                let fd = fds.pop();
                self.back = fd.map(UnixStream::from);
            }
            SET_VRING_NUM if index()? == 0 => self.queue.set_size(number(p, 4, 4)? as u32)?,
            SET_VRING_BASE if index()? == 0 => self.queue.set_base(number(p, 4, 4)? as u16),
            SET_VRING_ENABLE if index()? == 0 => self.queue.enabled = number(p, 4, 4)? != 0,
            SET_VRING_ADDR if index()? == 0 => {
                self.queue.descriptors = self.user_address(number(p, 8, 8)?)?;
                self.queue.used = self.user_address(number(p, 16, 8)?)?;
                self.queue.available = self.user_address(number(p, 24, 8)?)?;
            }
            other => {
                return Err(GuestError::disk(format!(
                    "message {other} is not supported"
                )));
            }
        }
        Ok(())
    }

    /// Maps the guest's memory: one region.
    fn map(&mut self, p: &[u8], fds: &[OwnedFd]) -> Result<(), GuestError> {
        let (regions, Some(fd)) = (number(p, 0, 4)?, fds.first()) else {
            return Err(GuestError::disk("a memory table without a descriptor"));
        };
        if regions != 1 || fds.len() != 1 {
            return Err(GuestError::disk(format!(
                "{regions} memory regions instead of 1"
            )));
        }
        let region = Region {
            guest: number(p, 8, 8)?,
            size: number(p, 16, 8)?,
            user: number(p, 24, 8)?,
            offset: number(p, 32, 8)?,
        };
        let end = region.offset.checked_add(region.size);
        let file = rustix::fs::fstat(fd).map_err(GuestError::host("size the guest's memory"))?;
        // A mapping past the end of the file would end this process with SIGBUS.
        let Some(end) = end.filter(|&e| e <= file.st_size as u64) else {
            return Err(GuestError::disk("a memory region past the end of its file"));
        };
        self.memory = Some(Mapping::new(fd, end as usize)?);
        self.region = Some(region);
        Ok(())
    }

    /// Converts an address of the ring messages to an offset in the mapping.
    fn user_address(&self, address: u64) -> Result<u64, GuestError> {
        let region = self.region.as_ref();
        region
            .filter(|r| address >= r.user && address - r.user < r.size)
            .and_then(|r| (address - r.user).checked_add(r.offset))
            .ok_or_else(|| GuestError::disk(format!("ring address {address:#x} in no region")))
    }

    /// Converts the addresses of a chain, which are guest-physical, to offsets in the mapping.
    fn take_requests(&mut self, now: u64) -> Result<(), GuestError> {
        let (Some(memory), Some(region)) = (&self.memory, &self.region) else {
            return Err(GuestError::disk("a kick before the memory is known"));
        };
        if region.guest != region.offset {
            return Err(GuestError::disk("memory that does not begin at its offset"));
        }
        while let Some(chain) = self.queue.take(memory)? {
            if let Some(done) = self.disk.submit(now, &chain, memory)? {
                self.finished.push(done);
            }
        }
        Ok(())
    }

    /// Runs the device to `now` and returns all finished requests to the guest. Returns true if
    /// the guest must be called: the caller then waits for the answer on [`Connection::back`].
    pub fn complete(&mut self, now: u64) -> Result<bool, GuestError> {
        let Some(memory) = &self.memory else {
            return Ok(false);
        };
        let mut finished = std::mem::take(&mut self.finished);
        self.disk.advance(now, memory, &mut finished)?;
        let any = !finished.is_empty();
        for f in finished.drain(..) {
            self.queue.give_back(memory, f.head, f.written)?;
        }
        self.finished = finished;
        if !any || memory.u16(self.queue.available)? & NO_CALL != 0 {
            return Ok(false);
        }
        let Some(back) = &mut self.back else {
            return Err(GuestError::disk("no channel for calls"));
        };
        let mut m = header(BACKEND_VRING_CALL, VERSION | NEED_REPLY, 8).to_vec();
        m.extend([0u8; 8]);
        back.write_all(&m)
            .map_err(GuestError::host("call the guest"))?;
        Ok(true)
    }

    /// Reads the guest's answer to a call. Returns false if the guest has ended.
    pub fn answered(&mut self) -> bool {
        let mut b = [0u8; 20];
        self.back
            .as_mut()
            .is_some_and(|s| s.read_exact(&mut b).is_ok())
    }

    fn reply_u64(&mut self, request: u32, value: u64) -> Result<(), GuestError> {
        self.reply(request, &value.to_ne_bytes())
    }

    fn reply_config(&mut self, p: &[u8]) -> Result<(), GuestError> {
        let (offset, size) = (number(p, 0, 4)? as usize, number(p, 4, 4)? as usize);
        if size > PAYLOAD_MAX - 12 {
            return Err(GuestError::disk(format!(
                "{size} bytes of the config space"
            )));
        }
        let config = self.disk.config();
        let mut answer = p[..12.min(p.len())].to_vec();
        answer.resize(12, 0);
        answer.extend((offset..offset + size).map(|i| config.get(i).copied().unwrap_or(0)));
        self.reply(GET_CONFIG, &answer)
    }

    fn reply(&mut self, request: u32, payload: &[u8]) -> Result<(), GuestError> {
        let mut m = header(request, VERSION | REPLY, payload.len() as u32).to_vec();
        m.extend(payload);
        let Some(socket) = &mut self.socket else {
            return Ok(());
        };
        socket
            .write_all(&m)
            .map_err(GuestError::host("answer the guest's disk driver"))
    }
}

fn header(request: u32, flags: u32, size: u32) -> [u8; 12] {
    let mut h = [0; 12];
    h[..4].copy_from_slice(&request.to_ne_bytes());
    h[4..8].copy_from_slice(&flags.to_ne_bytes());
    h[8..].copy_from_slice(&size.to_ne_bytes());
    h
}

/// Returns the number of `n` bytes at `at` of a payload.
fn number(p: &[u8], at: usize, n: usize) -> Result<u64, GuestError> {
    let Some(bytes) = p.get(at..at + n) else {
        return Err(GuestError::disk(format!(
            "a message of {} bytes is too short",
            p.len()
        )));
    };
    let mut b = [0; 8];
    // The guest and this process have the same byte order; it is little-endian on all that UML runs on.
    b[..n].copy_from_slice(bytes);
    Ok(u64::from_le_bytes(b))
}

fn read_with_fds(socket: &UnixStream, to: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), GuestError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(to)];
    let read = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC);
    let n = match read {
        Ok(m) => m.bytes,
        Err(rustix::io::Errno::CONNRESET) => 0,
        Err(e) => return Err(GuestError::host("read from the guest's disk driver")(e)),
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(all) = message {
            fds.extend(all);
        }
    }
    Ok((n, fds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tests::{BYTES, describe, offer};
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::io::IoSlice;
    use std::os::fd::AsFd;

    fn disk() -> GuestDisk {
        let device = seekwell_device::open("constant:constant,service_us=100,write_cache=yes", 1);
        let file = memfd_create("image", MemfdFlags::CLOEXEC).expect("an image");
        ftruncate(&file, 1 << 20).expect("sized");
        GuestDisk::new(
            device.expect("a device"),
            std::fs::File::from(file),
            crate::disk::SEGMENTS_MAX,
        )
    }

    fn connected() -> (UnixStream, Connection, tempdir::Dir) {
        let dir = tempdir::Dir::new();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).expect("a socket");
        let mut c = Connection::new(listener, disk());
        let guest = UnixStream::connect(&path).expect("connected");
        assert_eq!(c.receive(0).expect("accepted"), Served::Answered);
        (guest, c, dir)
    }

    /// A directory that is removed at the end.
    mod tempdir {
        use std::path::{Path, PathBuf};
        use std::sync::atomic::{AtomicU32, Ordering};
        pub struct Dir(PathBuf);
        impl Dir {
            pub fn new() -> Self {
                static N: AtomicU32 = AtomicU32::new(0);
                let n = N.fetch_add(1, Ordering::Relaxed);
                let dir =
                    std::env::temp_dir().join(format!("guest-test-{}-{n}", std::process::id()));
                std::fs::create_dir_all(&dir).expect("created");
                Dir(dir)
            }
            pub fn path(&self) -> &Path {
                &self.0
            }
        }
        impl Drop for Dir {
            fn drop(&mut self) {
                let _ = std::fs::remove_dir_all(&self.0);
            }
        }
    }

    fn send(guest: &mut UnixStream, request: u32, flags: u32, payload: &[u8]) {
        let mut m = header(request, flags, payload.len() as u32).to_vec();
        m.extend(payload);
        guest.write_all(&m).expect("sent");
    }

    fn reply(guest: &mut UnixStream) -> (u32, Vec<u8>) {
        let mut h = [0; 12];
        guest.read_exact(&mut h).expect("a reply");
        let word = |i: usize| u32::from_ne_bytes([h[i], h[i + 1], h[i + 2], h[i + 3]]);
        let mut p = vec![0; word(8) as usize];
        guest.read_exact(&mut p).expect("a payload");
        (word(0), p)
    }

    fn words(all: &[u64]) -> Vec<u8> {
        all.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// Does what a driver does before its first request. Returns its view of the memory.
    fn set_up(guest: &mut UnixStream, c: &mut Connection) -> (Mapping, UnixStream) {
        let fd = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&fd, BYTES as u64).expect("sized");
        let (own, theirs) = UnixStream::pair().expect("a pair");
        let mut pass = |request: u32, payload: &[u8], fd: std::os::fd::BorrowedFd<'_>| {
            let mut m = header(request, VERSION, payload.len() as u32).to_vec();
            m.extend(payload);
            let fds = [fd];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            control.push(SendAncillaryMessage::ScmRights(&fds));
            sendmsg(
                &*guest,
                &[IoSlice::new(&m)],
                &mut control,
                SendFlags::empty(),
            )
            .expect("sent");
            c.receive(0).expect("valid");
        };
        pass(
            SET_MEM_TABLE,
            &words(&[1, 0, BYTES as u64, 0, 0]),
            fd.as_fd(),
        );
        pass(SET_BACKEND_REQ_FD, &words(&[0]), theirs.as_fd());
        for (request, payload) in [
            (SET_VRING_NUM, words(&[8 << 32])),
            (SET_VRING_BASE, words(&[0])),
            (SET_VRING_ADDR, words(&[0, 0x1000, 0x3000, 0x2000, 0])),
            (SET_VRING_ENABLE, words(&[1 << 32])),
        ] {
            send(guest, request, VERSION | NEED_REPLY, &payload);
            assert_eq!(c.receive(0).expect("valid"), Served::Answered);
            assert_eq!(reply(guest).0, request);
        }
        (Mapping::new(&fd, BYTES).expect("mapped"), own)
    }

    #[test]
    fn write_then_read_returns_the_bytes_at_the_modelled_time() {
        let (mut guest, mut c, _dir) = connected();
        let (m, mut back) = set_up(&mut guest, &mut c);
        let request = |kind: u32, device_writes: u16| {
            m.write(0x100, &kind.to_le_bytes()).expect("inside");
            m.write(0x108, &3u64.to_le_bytes()).expect("inside");
            describe(&m, 0x1000, 0, 0x100, 16, 1, 1);
            describe(&m, 0x1000, 1, 0x5000, 512, 1 | device_writes, 2);
            describe(&m, 0x1000, 2, 0x200, 1, 2, 0);
        };
        for (i, (kind, flag)) in [(1, 0), (0, 2)].into_iter().enumerate() {
            m.write(0x5000, &[if kind == 1 { 0xab } else { 0 }; 512])
                .expect("inside");
            request(kind, flag);
            offer(&m, &[0, 0][..=i]);
            send(&mut guest, VRING_KICK, VERSION | NEED_REPLY, &words(&[0]));
            let at = 1_000_000 * i as u64;
            assert_eq!(c.receive(at).expect("valid"), Served::Kicked);
            c.confirm().expect("sent");
            assert_eq!(reply(&mut guest).0, VRING_KICK);
            assert_eq!(c.next_event(), Some(at + 100_000));
            assert!(
                c.complete(at + 100_000).expect("valid"),
                "the guest is called"
            );
            let mut call = [0; 20];
            back.read_exact(&mut call).expect("a call");
            back.write_all(&call).expect("answered");
            assert!(c.answered());
        }
        let mut b = [0; 512];
        m.read(0x5000, &mut b).expect("inside");
        assert!(
            b.iter().all(|x| *x == 0xab),
            "the read returns what was written"
        );
        let log = c.into_disk().into_log();
        let times: Vec<_> = log.iter().map(|e| (e.arrive_ns, e.complete_ns)).collect();
        assert_eq!(times, [(0, Some(100_000)), (1_000_000, Some(1_100_000))]);
    }

    #[test]
    fn features_and_config_follow_the_device() {
        let (mut guest, mut c, _dir) = connected();
        send(&mut guest, GET_FEATURES, VERSION, &[]);
        c.receive(0).expect("valid");
        let features = number(&reply(&mut guest).1, 0, 8).expect("8 bytes");
        assert!(features & 1 << 9 != 0, "a device with a cache offers FLUSH");
        send(
            &mut guest,
            GET_CONFIG,
            VERSION,
            &[0, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0],
        );
        c.receive(0).expect("valid");
        let config = reply(&mut guest).1;
        let sectors = c.into_disk().facts().capacity.0;
        assert_eq!(number(&config, 12, 8).expect("8 bytes"), sectors);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn random_messages_never_panic(
            all in proptest::collection::vec(
                (0u32..40, any::<u32>(), proptest::collection::vec(any::<u8>(), 0..64)), 1..20),
        ) {
            let (mut guest, mut c, _dir) = connected();
            for (request, flags, payload) in all {
                send(&mut guest, request, flags, &payload);
                if c.receive(0).is_err() {
                    break;
                }
                let _ = c.confirm();
            }
        }
    }
}
