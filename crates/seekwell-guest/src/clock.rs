//! The clock of the guest: UML's time-travel protocol with shared memory.
//!
//! The guest runs freely until `free_until`. It then sends WAIT, and this process decides who is
//! next: the guest's own timer or the disk.
//!
//! Kernels before 6.8 do not have the shared memory. They send every timer and every change of the
//! time as a message, and get `free_until` in one. Such a kernel ignores the descriptors that it is
//! offered; the capability bit in its record stays 0.

use crate::error::GuestError;
use crate::memory::Mapping;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Time of day at virtual time 0, in ns: 2024-01-01 00:00 UTC.
const DAY_NS: u64 = 1_704_067_200_000_000_000;
/// A time that never comes, which the guest accepts.
pub const NEVER: u64 = i64::MAX as u64;

const ACK: u32 = 0;
const START: u32 = 1;
const REQUEST: u32 = 2;
const WAIT: u32 = 3;
const GET: u32 = 4;
const UPDATE: u32 = 5;
const RUN: u32 = 6;
const FREE_UNTIL: u32 = 7;
const GET_TOD: u32 = 8;
const BROADCAST: u32 = 9;

/// Offsets in the shared page (`struct um_timetravel_schedshm`).
const VERSION_AT: u64 = 0;
const LEN_AT: u64 = 4;
const FREE_UNTIL_AT: u64 = 8;
const CURRENT_AT: u64 = 16;
const RUNNING_AT: u64 = 24;
const MAX_CLIENTS_AT: u64 = 26;
/// The record of a client: 128 bytes each, after the header.
const CLIENTS_AT: u64 = 4096;
const CLIENT_BYTES: u64 = 128;
const FLAGS_IN_CLIENT: u64 = 4;
const REQUEST_IN_CLIENT: u64 = 8;
/// This process is client 0, and the guest client 1.
const GUEST: u16 = 1;
const LEN: usize = CLIENTS_AT as usize + 2 * CLIENT_BYTES as usize;

/// A message that the controller must act on.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// The guest has started.
    Started,
    /// The guest waits for its next turn.
    Waits,
    /// A program in the guest wrote this number to `bc-message`.
    Mark(u64),
    /// The message needed only an answer.
    Answered,
    /// The guest has confirmed a message of this process.
    Confirmed,
    /// The guest closed the connection.
    Closed,
}

/// The connection to the guest's clock.
pub struct Clock {
    socket: UnixStream,
    shared: Mapping,
    shared_fd: OwnedFd,
    /// Time of the guest's next timer, from messages.
    timer: Option<u64>,
    /// Number of the next message to the guest.
    seq: u32,
    /// WAIT arrived while this process waited for the answer to a message.
    waits: bool,
    /// Marks that arrived at that time.
    marks: Vec<u64>,
}

impl Clock {
    /// Prepares the shared memory for a guest that has connected.
    pub fn new(socket: UnixStream) -> Result<Self, GuestError> {
        let fd = memfd_create("guest-clock", MemfdFlags::CLOEXEC)
            .map_err(GuestError::host("create shared memory"))?;
        ftruncate(&fd, LEN as u64).map_err(GuestError::host("size shared memory"))?;
        let shared = Mapping::new(&fd, LEN)?;
        shared.write(VERSION_AT, &2u32.to_ne_bytes())?;
        shared.write(LEN_AT, &(LEN as u32).to_ne_bytes())?;
        shared.write(MAX_CLIENTS_AT, &2u16.to_ne_bytes())?;
        // The guest writes its requests into the memory only if client 0 can read them there.
        shared.write(CLIENTS_AT, &1u32.to_ne_bytes())?;
        let clock = Clock {
            socket,
            shared,
            shared_fd: fd,
            timer: None,
            seq: 0,
            waits: false,
            marks: Vec::new(),
        };
        clock.shared.write(FREE_UNTIL_AT, &NEVER.to_ne_bytes())?;
        clock.set_running(true)?;
        Ok(clock)
    }

    /// Returns the socket, for poll(2).
    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }
    /// Returns the current virtual time, ns.
    pub fn now(&self) -> Result<u64, GuestError> {
        self.shared.u64(CURRENT_AT)
    }
    /// Sets the current virtual time while the guest waits.
    pub fn set_now(&self, ns: u64) -> Result<(), GuestError> {
        self.shared.write(CURRENT_AT, &ns.to_ne_bytes())
    }
    /// Returns whether the guest uses the shared memory.
    fn is_shared(&self) -> Result<bool, GuestError> {
        let record = CLIENTS_AT + CLIENT_BYTES * u64::from(GUEST);
        Ok(self.shared.u32(record)? & 1 != 0)
    }
    /// Sets the time up to which the guest may run without asking. Returns after the guest has the
    /// new bound.
    pub fn set_free_until(&mut self, ns: u64) -> Result<(), GuestError> {
        self.shared.write(FREE_UNTIL_AT, &ns.to_ne_bytes())?;
        if self.is_shared()? {
            return Ok(());
        }
        self.order(FREE_UNTIL, ns)
    }
    /// Records who runs: the guest or this process.
    pub fn set_running(&self, guest: bool) -> Result<(), GuestError> {
        let id = if guest { GUEST } else { 0 };
        self.shared.write(RUNNING_AT, &id.to_ne_bytes())
    }
    /// Returns the time of the guest's next timer, if it has one.
    pub fn requested(&self) -> Result<Option<u64>, GuestError> {
        if !self.is_shared()? {
            return Ok(self.timer.filter(|&t| t < NEVER));
        }
        let record = CLIENTS_AT + CLIENT_BYTES * u64::from(GUEST);
        if self.shared.u32(record + FLAGS_IN_CLIENT)? & 1 == 0 {
            return Ok(None);
        }
        Ok(Some(self.shared.u64(record + REQUEST_IN_CLIENT)?).filter(|&t| t < NEVER))
    }
    /// Lets the waiting guest run from `ns`.
    pub fn run(&mut self, ns: u64) -> Result<(), GuestError> {
        self.set_now(ns)?;
        self.set_running(true)?;
        if self.is_shared()? {
            return self.send(RUN, 0, ns);
        }
        self.timer = None;
        self.order(RUN, ns)
    }

    /// Sends a message and serves the guest until it has confirmed the message.
    fn order(&mut self, op: u32, ns: u64) -> Result<(), GuestError> {
        self.seq = self.seq.wrapping_add(1);
        self.send(op, self.seq, ns)?;
        loop {
            match self.read()? {
                Asked::Confirmed => return Ok(()),
                Asked::Waits => self.waits = true,
                Asked::Mark(m) => self.marks.push(m),
                Asked::Closed => return Err(GuestError::clock("closed during an order")),
                Asked::Started | Asked::Answered => {}
            }
        }
    }

    /// Returns a message that arrived while this process waited for a confirmation.
    pub fn postponed(&mut self) -> Option<Asked> {
        if !self.marks.is_empty() {
            return Some(Asked::Mark(self.marks.remove(0)));
        }
        std::mem::take(&mut self.waits).then_some(Asked::Waits)
    }

    /// Reads one message and answers it.
    pub fn receive(&mut self) -> Result<Asked, GuestError> {
        match self.postponed() {
            Some(asked) => Ok(asked),
            None => self.read(),
        }
    }

    fn read(&mut self) -> Result<Asked, GuestError> {
        let mut b = [0u8; 16];
        if self.socket.read_exact(&mut b).is_err() {
            return Ok(Asked::Closed);
        }
        let word = |i: usize| u32::from_ne_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        let (op, seq) = (word(0), word(4));
        let time = u64::from(word(8)) | u64::from(word(12)) << 32;
        let asked = match op {
            START => {
                self.start(seq)?;
                return Ok(Asked::Started);
            }
            ACK => return Ok(Asked::Confirmed),
            WAIT => Asked::Waits,
            BROADCAST => Asked::Mark(time),
            REQUEST | UPDATE | GET | GET_TOD => Asked::Answered,
            other => return Err(GuestError::clock(format!("operation {other}"))),
        };
        match op {
            REQUEST => self.timer = Some(time),
            UPDATE => self.set_now(time)?,
            // With shared memory, WAIT has no answer.
            WAIT if self.is_shared()? => return Ok(asked),
            _ => {}
        }
        let answer = match op {
            GET => self.now()?,
            GET_TOD => DAY_NS + self.now()?,
            _ => 0,
        };
        self.send(ACK, seq, answer)?;
        Ok(asked)
    }

    fn send(&mut self, op: u32, seq: u32, time: u64) -> Result<(), GuestError> {
        self.socket
            .write_all(&message(op, seq, time))
            .map_err(GuestError::host("answer the guest's clock"))
    }

    /// Answers START with the descriptors of the shared memory and of a log, which is not used.
    fn start(&mut self, seq: u32) -> Result<(), GuestError> {
        let log = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .map_err(GuestError::host("open /dev/null"))?;
        let fds = [self.shared_fd.as_fd(), log.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let bytes = message(ACK, seq, u64::from(GUEST));
        sendmsg(
            &self.socket,
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::empty(),
        )
        .map_err(GuestError::host("send the shared memory to the guest"))?;
        Ok(())
    }
}

fn message(op: u32, seq: u32, time: u64) -> [u8; 16] {
    let mut b = [0; 16];
    b[..4].copy_from_slice(&op.to_ne_bytes());
    b[4..8].copy_from_slice(&seq.to_ne_bytes());
    b[8..].copy_from_slice(&time.to_ne_bytes());
    b
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::thread;

    fn read(s: &mut UnixStream) -> (u32, u32, u64) {
        let mut b = [0; 16];
        s.read_exact(&mut b).expect("a message");
        let word = |i: usize| u32::from_ne_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        let time = u64::from(word(8)) | u64::from(word(12)) << 32;
        (word(0), word(4), time)
    }

    fn pair() -> (UnixStream, Clock) {
        let (guest, own) = UnixStream::pair().expect("a pair");
        (guest, Clock::new(own).expect("a clock"))
    }

    #[test]
    fn start_is_answered_with_the_number_of_the_client() {
        let (mut guest, mut clock) = pair();
        guest.write_all(&message(START, 7, 99)).expect("sent");
        assert_eq!(clock.receive().expect("valid"), Asked::Started);
        assert_eq!(read(&mut guest), (ACK, 7, u64::from(GUEST)));
    }

    #[test]
    fn guest_without_shared_memory_gets_its_bound_by_message() {
        let (mut guest, mut clock) = pair();
        guest.write_all(&message(REQUEST, 1, 5_000)).expect("sent");
        assert_eq!(clock.receive().expect("valid"), Asked::Answered);
        assert_eq!(read(&mut guest), (ACK, 1, 0));
        assert_eq!(clock.requested().expect("valid"), Some(5_000));
        // The guest sends WAIT before it reads the new bound. WAIT is not lost.
        let fake = thread::spawn(move || {
            guest.write_all(&message(WAIT, 2, 0)).expect("sent");
            loop {
                match read(&mut guest) {
                    (ACK, 2, _) => {}
                    (op, seq, time) => {
                        guest.write_all(&message(ACK, seq, 0)).expect("sent");
                        // The socket stays open until the clock has answered WAIT.
                        break (op, time, guest);
                    }
                }
            }
        });
        clock.set_free_until(4_000).expect("valid");
        let (op, time, _guest) = fake.join().expect("the fake guest");
        assert_eq!((op, time), (FREE_UNTIL, 4_000));
        let mut asked = clock.postponed();
        if asked.is_none() {
            asked = Some(clock.receive().expect("valid"));
        }
        assert_eq!(asked, Some(Asked::Waits));
    }

    #[test]
    fn guest_with_shared_memory_needs_no_message_for_its_timer() {
        let (guest, mut clock) = pair();
        let record = CLIENTS_AT + CLIENT_BYTES * u64::from(GUEST);
        let put = |at: u64, value: &[u8]| clock.shared.write(at, value).expect("inside");
        put(record, &1u32.to_ne_bytes());
        put(record + FLAGS_IN_CLIENT, &1u32.to_ne_bytes());
        put(record + REQUEST_IN_CLIENT, &77u64.to_ne_bytes());
        assert_eq!(clock.requested().expect("valid"), Some(77));
        clock.set_free_until(50).expect("no message");
        guest.set_nonblocking(true).expect("set");
        let mut b = [0; 16];
        assert!((&guest).read(&mut b).is_err(), "nothing was sent");
    }

    #[test]
    fn unknown_operation_is_an_error_and_a_closed_guest_is_not() {
        let (mut guest, mut clock) = pair();
        guest.write_all(&message(77, 1, 0)).expect("sent");
        assert!(clock.receive().is_err());
        drop(guest);
        assert_eq!(clock.receive().expect("closed"), Asked::Closed);
    }
}
