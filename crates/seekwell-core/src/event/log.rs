//! Destinations of events: a log of the member's own, or one stream for all members.

use super::Event;
use crate::bio::BioId;
use crate::time::{Instant, Nanos};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A queue, array, guest or disk of one device under test, by number; 0 is the top.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MemberId(pub u16);

/// The kind of a member.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// A block queue, with its scheduler and the device below.
    #[default]
    Queue,
    /// Several queues combined (md, dm), without a scheduler of its own.
    Array,
    /// A disk inside a controller, without a scheduler above it.
    Disk,
}

/// A member, as a stream announces it.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its number in the stream.
    pub id: MemberId,
    /// The member it is part of; `None` for the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<MemberId>,
    /// Its kind.
    pub kind: MemberKind,
    /// Its path from the top: `0/1`, `host`; empty for the top.
    pub path: String,
    /// The device, by its own name.
    pub name: String,
}

#[derive(Debug, Default)]
struct Book {
    events: Vec<Event>,
    members: Vec<Member>,
}

fn open(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    // Only one thread at a time writes and reads; the lock only makes sharing possible.
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A writer of the stream of all members; events arrive in the order of writing.
#[derive(Clone, Debug)]
pub struct Tap {
    book: Arc<Mutex<Book>>,
    member: MemberId,
    /// How far the writer's clock is ahead of the stream's.
    ahead: Nanos,
}

impl Default for Tap {
    fn default() -> Self {
        Tap::new()
    }
}

impl Tap {
    /// Creates a new stream with its top member.
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
    /// Adds a member below this one; `part` is its place in it.
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
    /// The same writer, for a member whose clock is ahead of the stream's.
    #[must_use]
    pub fn behind(&self, ahead: Nanos) -> Tap {
        Tap {
            ahead: self.ahead + ahead,
            ..self.clone()
        }
    }
    /// The member that this writer belongs to.
    pub fn id(&self) -> MemberId {
        self.member
    }
    /// All members so far.
    pub fn members(&self) -> Vec<Member> {
        open(&self.book).members.clone()
    }
    /// Moves the events written since the last call into `into`.
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

/// Collects events while there is a listener.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    on: bool,
    tap: Option<Tap>,
    /// Events since the listener last took them; empty if they go to a stream of members.
    pub events: Vec<Event>,
    /// With [`EventLog::listen_with_bios`]: the index in `events` of each event about a request,
    /// and the bios of that request at the time.
    bios: Option<Vec<(usize, Vec<BioId>)>>,
}

impl EventLog {
    /// Starts or stops listening here.
    pub fn listen(&mut self, on: bool) {
        self.on = on;
        self.tap = None;
        self.bios = None;
    }
    /// Starts listening here, and keeps the bios of the requests in events, because a request may
    /// be gone before [`EventLog::take`] is called.
    pub fn listen_with_bios(&mut self) {
        self.listen(true);
        self.events.clear();
        self.bios = Some(Vec::new());
    }
    /// The events since the last call, each with its bios: those of its request, else its own.
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
    /// Records that the last added event is about a request with these bios.
    pub fn about(&mut self, bios: impl Iterator<Item = BioId>) {
        if let (Some(kept), Some(i)) = (&mut self.bios, self.events.len().checked_sub(1)) {
            kept.push((i, bios.collect()));
        }
    }
    /// Sends all further events to a stream; `None` ends this.
    pub fn join(&mut self, tap: Option<Tap>) {
        self.on = tap.is_some();
        self.tap = tap;
    }
    /// Whether there is a listener.
    #[inline]
    pub fn listening(&self) -> bool {
        self.on
    }
    /// The stream that receives all events.
    pub fn tap(&self) -> Option<&Tap> {
        self.tap.as_ref()
    }
    /// The number of this member in that stream.
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
