//! The event stream: events with blktrace's letters, the scheduler's reasons and timers, and events
//! of the device.
//!
//! Without a listener, a push only tests a bool. `docs/events.md` describes the stream's file
//! format ([`wire`]).

mod log;
mod snapshot;
#[cfg(test)]
mod tests;
pub mod wire;

pub use log::{EventLog, Member, MemberId, MemberKind, Tap};
pub use snapshot::{Asleep, Held, Snapshot, Waiting};

use crate::bio::{BioId, Flags, Op};
use crate::ioc::{CgroupId, IocId, TaskId};
use crate::request::{RqId, State};
use crate::rule::Rule;
use crate::time::Instant;
use crate::units::{Sector, Sectors};

/// The action of an event. Most actions have a letter of blktrace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// Q: a bio arrives.
    Queue,
    /// G: a request was allocated for a bio.
    GetRq,
    /// S: a bio waits for a request or a tag.
    SleepRq,
    /// M: a bio was merged at the end of a request.
    BackMerge,
    /// F: a bio was merged at the front of a request.
    FrontMerge,
    /// I: a request was inserted into the scheduler.
    Insert,
    /// P: a task plugged the queue.
    Plug,
    /// U: a task unplugged the queue.
    Unplug,
    /// X: a bio was split.
    Split,
    /// A: a bio was sent to a member (remapped).
    Remap,
    /// E: the scheduler emitted a request (not in blktrace; between I and D).
    Elevator,
    /// D: a request was issued to the driver.
    Issue,
    /// R: the driver returned a request.
    Requeue,
    /// C: a request or bio completed.
    Complete,
    /// Two adjacent requests were joined. `rq` remains; [`More::Gone`] was removed.
    Join,
    /// The device has written the data of a flush sequence. A flush follows, and then C.
    Part,
    /// A scheduler armed a timer, or armed it again.
    Arm,
    /// A scheduler disarmed a timer.
    Disarm,
    /// A scheduler timer fired.
    Timer,
    /// The scheduler gave the reason of a decision.
    Why,
    /// A device moves its head and transfers data.
    Head,
    /// A device or model read from or wrote to its cache instead of the medium.
    CacheHit,
    /// A flash die starts an operation.
    Flash,
}

impl Action {
    /// All actions.
    pub const ALL: [Action; 23] = [
        Action::Queue,
        Action::GetRq,
        Action::SleepRq,
        Action::BackMerge,
        Action::FrontMerge,
        Action::Insert,
        Action::Plug,
        Action::Unplug,
        Action::Split,
        Action::Remap,
        Action::Elevator,
        Action::Issue,
        Action::Requeue,
        Action::Complete,
        Action::Join,
        Action::Part,
        Action::Arm,
        Action::Disarm,
        Action::Timer,
        Action::Why,
        Action::Head,
        Action::CacheHit,
        Action::Flash,
    ];
    /// Returns the letter of the action in blktrace. Seekwell's own actions have `E`, `T`, `m` or a
    /// lower-case letter.
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
            Action::Join => 'j',
            Action::Part => 'p',
            Action::Arm => 'a',
            Action::Disarm => 'd',
            Action::Timer => 'T',
            Action::Why => 'm',
            Action::Head => 'h',
            Action::CacheHit => 'c',
            Action::Flash => 'f',
        }
    }
}

/// Data that only some kinds of events have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum More {
    /// No additional data.
    #[default]
    None,
    /// The name of a timer, and the time at which it fires (armed), would have fired (disarmed), or
    /// was due (fired).
    Timer {
        /// The kernel's name of the timer.
        slot: &'static str,
        /// The time.
        until: Instant,
    },
    /// The request that another request took over, in a join or in a merge of a request that was
    /// never queued.
    Gone(RqId),
    /// Number of parts that a bio was split into.
    Pieces(u32),
    /// The part of a bio that goes to a member.
    To {
        /// The member that gets the part.
        member: MemberId,
        /// Id of the part in that member.
        bio: BioId,
        /// First sector of the part in that member. ([`Event::sector`] is the sector of the whole
        /// bio.)
        sector: Sector,
        /// Length of the part in sectors.
        sectors: Sectors,
    },
    /// A head moves from one sector to another, and reads or writes there. The sectors of the event
    /// are the transferred sectors.
    Head {
        /// Position before the move.
        from: Sector,
        /// Start of the move: now, or after the current operation.
        begin: Instant,
        /// Time at which the last sector has been transferred.
        until: Instant,
    },
    /// An operation of a flash die.
    Die {
        /// Number of the die.
        die: u32,
        /// Number of the channel of the die.
        channel: u32,
        /// Name of the operation.
        doing: &'static str,
        /// Time at which the operation ends, if it is not interrupted.
        until: Instant,
    },
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event.
    pub at: Instant,
    /// The member (queue, array, guest or disk) that produced the event.
    pub member: MemberId,
    /// The action.
    pub action: Action,
    /// The request that the event is about.
    pub rq: Option<RqId>,
    /// State of that request after the event.
    pub state: Option<State>,
    /// The bio that the event is about. For a request: its first bio.
    pub bio: Option<BioId>,
    /// The task that the event is about: the task of the io context. For a reason or a timer: its
    /// subject.
    pub task: Option<TaskId>,
    /// The second task, for a reason about two tasks.
    pub other: Option<TaskId>,
    /// The cgroup that the event is about.
    pub cgroup: Option<CgroupId>,
    /// The scheduler's own queue that a reason is about, by the scheduler's number.
    pub queue: Option<u32>,
    /// Operation.
    pub op: Op,
    /// Flags.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: Sectors,
    /// For a reason: the rule that decided.
    pub rule: Option<&'static Rule>,
    /// Data that only some kinds of events have.
    pub more: More,
    /// Details in words. [`WHO`] and [`OTHER`] are placeholders for tasks, see [`Event::text`].
    pub detail: String,
}

/// Placeholder for [`Event::task`] in a detail.
pub const WHO: &str = "{who}";
/// Placeholder for [`Event::other`] in a detail.
pub const OTHER: &str = "{other}";

impl Event {
    /// Returns an event that only has a time and an action.
    pub const fn new(at: Instant, action: Action) -> Self {
        Event {
            at,
            member: MemberId(0),
            action,
            rq: None,
            state: None,
            bio: None,
            task: None,
            other: None,
            cgroup: None,
            queue: None,
            op: Op::Read,
            flags: Flags::empty(),
            sector: Sector(0),
            sectors: Sectors(0),
            rule: None,
            more: More::None,
            detail: String::new(),
        }
    }
    /// Returns an event about a bio.
    pub fn of_bio(at: Instant, action: Action, bio: &crate::Bio) -> Self {
        Event {
            bio: Some(bio.id),
            task: Some(bio.task),
            op: bio.op,
            flags: bio.flags,
            sector: bio.sector,
            sectors: bio.sectors,
            ..Event::new(at, action)
        }
    }
    /// Returns the name of the rule that decided; empty if there is none.
    pub fn rule_id(&self) -> &'static str {
        self.rule.map_or("", |r| r.id)
    }
    /// Returns the detail with the names of tasks. A queue without a task is named by its number.
    pub fn text(&self, name: impl Fn(TaskId) -> String) -> String {
        words(&self.detail, self.task, self.other, self.queue, name)
    }
}

/// Returns a detail in which [`WHO`] and [`OTHER`] are replaced.
pub fn words(
    detail: &str,
    task: Option<TaskId>,
    other: Option<TaskId>,
    queue: Option<u32>,
    name: impl Fn(TaskId) -> String,
) -> String {
    if !detail.contains('{') {
        return detail.to_owned();
    }
    let unnamed = || queue.map_or("nobody".to_owned(), |q| format!("queue {q}"));
    let who = task.map_or_else(unnamed, &name);
    let other = other.map_or("another".to_owned(), name);
    detail.replace(WHO, &who).replace(OTHER, &other)
}

/// The subject of a reason or a timer. Unknown fields are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// A request. It also gives the task and the cgroup.
    pub rq: Option<RqId>,
    /// An io context. It also gives the task and the cgroup.
    pub ioc: Option<IocId>,
    /// A task.
    pub task: Option<TaskId>,
    /// A second task.
    pub other: Option<TaskId>,
    /// A cgroup.
    pub cgroup: Option<CgroupId>,
    /// Number of the scheduler's own queue.
    pub queue: Option<u32>,
}

impl About {
    /// Returns the subject for a request.
    pub fn rq(rq: RqId) -> Self {
        About {
            rq: Some(rq),
            ..About::default()
        }
    }
    /// Returns the subject for an io context.
    pub fn ioc(ioc: IocId) -> Self {
        About {
            ioc: Some(ioc),
            ..About::default()
        }
    }
    /// Returns the subject for the scheduler's own queue and its task.
    pub fn queue(queue: u32, task: Option<TaskId>) -> Self {
        About {
            queue: Some(queue),
            task,
            ..About::default()
        }
    }
    /// Adds a second task to the subject.
    #[must_use]
    pub fn and(self, other: Option<TaskId>) -> Self {
        About { other, ..self }
    }
    /// Adds a request to the subject.
    #[must_use]
    pub fn with(self, rq: RqId) -> Self {
        About {
            rq: Some(rq),
            ..self
        }
    }
    /// Returns a reason with this subject and text.
    pub fn says(self, text: impl Into<String>) -> Reason {
        Reason {
            about: self,
            text: text.into(),
        }
    }
}

/// The reason of a single decision: its subject, and a text with numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// The subject of the reason.
    pub about: About,
    /// The text. [`WHO`] and [`OTHER`] are placeholders for tasks.
    pub text: String,
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        About::default().says(text)
    }
}
