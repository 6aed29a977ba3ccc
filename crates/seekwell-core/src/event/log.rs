//! The destinations of events: a log of one member, or one stream for all members.

use super::Event;
use crate::bio::BioId;
use crate::time::{Instant, Nanos};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of a member of a device under test: a queue, array, guest or disk. The top member is 0.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MemberId(pub u16);

/// The kind of a member.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// A block queue, with its scheduler and the device below it.
    #[default]
    Queue,
    /// Several queues combined (md, dm), without a scheduler of its own.
    Array,
    /// A disk behind a controller, without a scheduler of its own.
    Disk,
}

/// A member, as a stream describes it.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Number of the member in the stream.
    pub id: MemberId,
    /// The member that contains this member; `None` for the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<MemberId>,
    /// Kind of the member.
    pub kind: MemberKind,
    /// Path of the member from the top, for example `0/1` or `host`; empty for the top.
    pub path: String,
    /// Name of the device.
    pub name: String,
}

#[derive(Debug, Default)]
struct Book {
    events: Vec<Event>,
    members: Vec<Member>,
}

fn open(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    // Only one thread at a time writes and reads. The lock is only needed so that threads can share
    // these types.
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The writer of one member for the stream of all members. Events are stored in the order of
/// writing.
#[derive(Clone, Debug)]
pub struct Tap {
    book: Arc<Mutex<Book>>,
    member: MemberId,
    /// Difference by which the member's clock is ahead of the stream's clock.
    ahead: Nanos,
}

impl Default for Tap {
    fn default() -> Self {
        Tap::new()
    }
}

impl Tap {
    /// Creates a stream, and returns the writer of its top member.
    pub fn new() -> Self {
        let top = Tap {
            book: Arc::default(),
            member: MemberId(0),
            ahead: Nanos::ZERO,
        };
        open(&top.book).members.push(Member::default());
        top
    }
    /// Sets the kind and name of this member.
    pub fn introduce(&self, kind: MemberKind, name: &str) {
        let mut book = open(&self.book);
        if let Some(m) = book.members.get_mut(usize::from(self.member.0)) {
            m.kind = kind;
            name.clone_into(&mut m.name);
        }
    }
    /// Adds a member below this one and returns its writer. `part` is its name in this member's
    /// path.
    #[must_use]
    pub fn member(&self, part: &str) -> Tap {
        let mut book = open(&self.book);
        let path = match book.members.get(usize::from(self.member.0)) {
            Some(m) if !m.path.is_empty() => format!("{}/{part}", m.path),
            _ => part.to_owned(),
        };
        let id = MemberId(u16::try_from(book.members.len()).unwrap_or(u16::MAX));
        book.members.push(Member {
            id,
            of: Some(self.member),
            path,
            ..Member::default()
        });
        Tap {
            member: id,
            ..self.clone()
        }
    }
    /// Returns a writer for the same member, whose clock is ahead of the stream's clock by `ahead`.
    #[must_use]
    pub fn behind(&self, ahead: Nanos) -> Tap {
        Tap {
            ahead: self.ahead + ahead,
            ..self.clone()
        }
    }
    /// Returns the number of the member that this writer belongs to.
    pub fn id(&self) -> MemberId {
        self.member
    }
    /// Returns all members that were added.
    pub fn members(&self) -> Vec<Member> {
        open(&self.book).members.clone()
    }
    /// Moves the events written since the last call to `into`.
    pub fn take(&self, into: &mut Vec<Event>) {
        into.append(&mut open(&self.book).events);
    }
    fn write(&self, mut e: Event) {
        use super::More;
        let by = self.ahead.0;
        let back = |t: &mut Instant| *t = Instant(t.0.saturating_sub(by));
        back(&mut e.at);
        match &mut e.more {
            More::Timer { until, .. } | More::Die { until, .. } => back(until),
            More::Head { begin, until, .. } => {
                back(begin);
                back(until);
            }
            _ => {}
        }
        e.member = self.member;
        open(&self.book).events.push(e);
    }
}

/// A log that collects events while it has a listener.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    on: bool,
    tap: Option<Tap>,
    /// Events since the listener last took them. Empty if the events go to a stream of members.
    pub events: Vec<Event>,
    /// For each event about a request: its index in `events`, and the bios of the request at that
    /// time. `None` without [`EventLog::listen_with_bios`].
    bios: Option<Vec<(usize, Vec<BioId>)>>,
}

impl EventLog {
    /// Starts or stops the collection of events in this log.
    pub fn listen(&mut self, on: bool) {
        self.on = on;
        self.tap = None;
        self.bios = None;
    }
    /// Starts the collection of events in this log, together with the bios of their requests. The
    /// bios are needed because a request may be freed before [`EventLog::take`] is called.
    pub fn listen_with_bios(&mut self) {
        self.listen(true);
        self.events.clear();
        self.bios = Some(Vec::new());
    }
    /// Returns the events since the last call. Each event has the bios of its request, or else its
    /// own bio.
    pub fn take(&mut self) -> Vec<(Event, Vec<BioId>)> {
        let kept = self.bios.as_mut().map(std::mem::take).unwrap_or_default();
        let mut kept = kept.into_iter().peekable();
        let events = std::mem::take(&mut self.events).into_iter().enumerate();
        let with = |(i, e): (usize, Event)| {
            let all = kept.next_if(|k| k.0 == i).map(|k| k.1);
            let bios = all.unwrap_or_else(|| e.bio.into_iter().collect());
            (e, bios)
        };
        events.map(with).collect()
    }
    /// Records that the event added last is about a request with these bios.
    pub fn about(&mut self, bios: impl Iterator<Item = BioId>) {
        if let (Some(kept), Some(i)) = (&mut self.bios, self.events.len().checked_sub(1)) {
            kept.push((i, bios.collect()));
        }
    }
    /// Sends all further events to a stream. `None` ends this.
    pub fn join(&mut self, tap: Option<Tap>) {
        self.on = tap.is_some();
        self.tap = tap;
    }
    /// Returns true if there is a listener.
    #[inline]
    pub fn listening(&self) -> bool {
        self.on
    }
    /// Returns the number of this member in that stream.
    pub fn member(&self) -> MemberId {
        self.tap.as_ref().map_or(MemberId(0), Tap::id)
    }
    /// Adds an event. The closure runs only if there is a listener.
    #[inline]
    pub fn push(&mut self, make: impl FnOnce() -> Event) {
        if self.on {
            self.add(make());
        }
    }
    #[cold]
    #[inline(never)]
    fn add(&mut self, e: Event) {
        match &self.tap {
            Some(tap) => tap.write(e),
            None => self.events.push(e),
        }
    }
}
