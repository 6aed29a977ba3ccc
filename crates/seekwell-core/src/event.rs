//! The one event stream: blktrace's letters, plus the scheduler's reasons.
//!
//! When nobody listens a push is one test of a bool.

use crate::bio::{BioId, Flags, Op};
use crate::ioc::TaskId;
use crate::request::RqId;
use crate::rule::Rule;
use crate::time::Instant;
use crate::units::{Sector, Sectors};

/// What happened, in blktrace's letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// Q: a bio arrives.
    Queue,
    /// G: a request was made for it.
    GetRq,
    /// S: it waits for a request or tag.
    SleepRq,
    /// M: merged at the end of a request.
    BackMerge,
    /// F: merged at the start.
    FrontMerge,
    /// I: into the scheduler.
    Insert,
    /// P: plugged.
    Plug,
    /// U: unplugged.
    Unplug,
    /// X: split.
    Split,
    /// A: remapped to a member.
    Remap,
    /// The scheduler let it go (no letter of blktrace: between I and D).
    Elevator,
    /// D: to the driver.
    Issue,
    /// R: back from the driver.
    Requeue,
    /// C: done.
    Complete,
    /// A scheduler timer fired.
    Timer,
    /// A message of the scheduler: its reason.
    Why,
}

impl Action {
    /// blktrace's letter; `E`, `T` and `m` for what is ours.
    pub const fn letter(self) -> char {
        match self {
            Action::Queue => 'Q',
            Action::GetRq => 'G',
            Action::SleepRq => 'S',
            Action::BackMerge => 'M',
            Action::FrontMerge => 'F',
            Action::Insert => 'I',
            Action::Plug => 'P',
            Action::Unplug => 'U',
            Action::Split => 'X',
            Action::Remap => 'A',
            Action::Elevator => 'E',
            Action::Issue => 'D',
            Action::Requeue => 'R',
            Action::Complete => 'C',
            Action::Timer => 'T',
            Action::Why => 'm',
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// What.
    pub action: Action,
    /// Request concerned.
    pub rq: Option<RqId>,
    /// Bio concerned (its first, for requests).
    pub bio: Option<BioId>,
    /// Task of the io context.
    pub task: TaskId,
    /// Operation.
    pub op: Op,
    /// Flags.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Rule that decided, for `Why`.
    pub rule: Option<&'static Rule>,
    /// Details in words; for `Timer` the name of its slot.
    pub detail: String,
}

impl Event {
    /// Name of the rule that decided; empty where none did.
    pub fn rule_id(&self) -> &'static str {
        self.rule.map_or("", |r| r.id)
    }
}

/// Collects events while somebody listens.
#[derive(Debug, Default)]
pub struct EventLog {
    on: bool,
    /// What came since the listener last took it.
    pub events: Vec<Event>,
}

impl EventLog {
    /// Starts or stops listening.
    pub fn listen(&mut self, on: bool) {
        self.on = on;
    }
    /// Does somebody listen?
    #[inline]
    pub fn listening(&self) -> bool {
        self.on
    }
    /// Adds an event, made only if somebody listens.
    #[inline]
    pub fn push(&mut self, make: impl FnOnce() -> Event) {
        if self.on {
            self.events.push(make());
        }
    }
}
