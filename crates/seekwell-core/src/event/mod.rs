//! The event stream: blktrace's letters, plus the scheduler's reasons and timers, and events of the
//! device.
//!
//! Without a listener a push costs one test of a bool. `docs/events.md` describes the stream as it
//! appears in files ([`wire`]).

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

/// What happened, with blktrace's letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// Q: a bio arrives.
    Queue,
    /// G: a request was allocated for it.
    GetRq,
    /// S: it waits for a request or tag.
    SleepRq,
    /// M: merged at the end of a request.
    BackMerge,
    /// F: merged at the start.
    FrontMerge,
    /// I: inserted into the scheduler.
    Insert,
    /// P: plugged.
    Plug,
    /// U: unplugged.
    Unplug,
    /// X: split.
    Split,
    /// A: remapped to a member.
    Remap,
    /// Emitted by the scheduler (not in blktrace: between I and D).
    Elevator,
    /// D: issued to the driver.
    Issue,
    /// R: returned by the driver.
    Requeue,
    /// C: completed.
    Complete,
    /// Two touching requests were joined: `rq` remains, [`More::Gone`] is gone.
    Join,
    /// The device has finished the data of a flush sequence; a flush follows, then C.
    Part,
    /// A scheduler armed a timer (again, if it was armed).
    Arm,
    /// A scheduler disarmed a timer.
    Disarm,
    /// A scheduler timer fired.
    Timer,
    /// A message of the scheduler: its reason.
    Why,
    /// A device moves its head and transfers data.
    Head,
    /// A device, or a model in its place, answers from a cache.
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
    /// blktrace's letter; `E`, `T`, `m` and lower-case letters for Seekwell's own actions.
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

/// Data that only some events have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum More {
    /// Nothing.
    #[default]
    None,
    /// A timer: the name of its slot, and when it fires, would have fired, or was due.
    Timer {
        /// The kernel's name of the timer.
        slot: &'static str,
        /// The time.
        until: Instant,
    },
    /// The request that another one took over (join, or a merge of a request that was never
    /// queued).
    Gone(RqId),
    /// Number of pieces that a bio was split into.
    Pieces(u32),
    /// A part of a bio goes to a member.
    To {
        /// The member.
        member: MemberId,
        /// Its id there.
        bio: BioId,
        /// First sector there; [`Event::sector`] is that of the whole bio.
        sector: Sector,
        /// Length of the part.
        sectors: Sectors,
    },
    /// A head moves from one sector to another and reads or writes there. The event's sectors are
    /// the transferred ones.
    Head {
        /// The old position.
        from: Sector,
        /// When the move begins: at once, or when the current operation has ended.
        begin: Instant,
        /// When the last sector has been transferred.
        until: Instant,
    },
    /// An operation of a flash die.
    Die {
        /// The die's number.
        die: u32,
        /// Its channel.
        channel: u32,
        /// The operation in a word.
        doing: &'static str,
        /// When it ends unless it is interrupted.
        until: Instant,
    },
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event.
    pub at: Instant,
    /// The queue, array, guest or disk.
    pub member: MemberId,
    /// The action.
    pub action: Action,
    /// The request concerned.
    pub rq: Option<RqId>,
    /// The new state of that request.
    pub state: Option<State>,
    /// The bio concerned (for a request, its first).
    pub bio: Option<BioId>,
    /// The task concerned: that of the io context; for a reason or timer, its subject.
    pub task: Option<TaskId>,
    /// A second task, for a reason about two tasks.
    pub other: Option<TaskId>,
    /// The cgroup concerned.
    pub cgroup: Option<CgroupId>,
    /// The scheduler's own queue that a reason is about, by the scheduler's number.
    pub queue: Option<u32>,
    /// Operation.
    pub op: Op,
    /// Flags.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// For `Why`: the rule that decided.
    pub rule: Option<&'static Rule>,
    /// Data that only some events have.
    pub more: More,
    /// Details in words. [`WHO`] and [`OTHER`] stand for the tasks, see [`Event::text`].
    pub detail: String,
}

/// Placeholder for [`Event::task`] in a detail.
pub const WHO: &str = "{who}";
/// Placeholder for [`Event::other`] in a detail.
pub const OTHER: &str = "{other}";

impl Event {
    /// An event with only a time and an action.
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
    /// An event about a bio.
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
    /// An event about a command to a device.
    pub fn of_command(at: Instant, action: Action, c: &crate::Command) -> Self {
        Event {
            rq: Some(RqId(c.id)),
            op: c.op,
            sector: c.sector,
            sectors: c.sectors,
            ..Event::new(at, action)
        }
    }
    /// Name of the rule that decided; empty if there is none.
    pub fn rule_id(&self) -> &'static str {
        self.rule.map_or("", |r| r.id)
    }
    /// The detail with the names of tasks. A queue without a task is named by its number.
    pub fn text(&self, name: impl Fn(TaskId) -> String) -> String {
        words(&self.detail, self.task, self.other, self.queue, name)
    }
}

/// A detail with [`WHO`] and [`OTHER`] replaced.
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

/// The subject of a reason or a timer, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// A request; it determines task and cgroup.
    pub rq: Option<RqId>,
    /// An io context; it determines task and cgroup.
    pub ioc: Option<IocId>,
    /// A task.
    pub task: Option<TaskId>,
    /// A second task.
    pub other: Option<TaskId>,
    /// A cgroup.
    pub cgroup: Option<CgroupId>,
    /// The scheduler's own queue, by number.
    pub queue: Option<u32>,
}

impl About {
    /// About a request.
    pub fn rq(rq: RqId) -> Self {
        About {
            rq: Some(rq),
            ..About::default()
        }
    }
    /// About an io context.
    pub fn ioc(ioc: IocId) -> Self {
        About {
            ioc: Some(ioc),
            ..About::default()
        }
    }
    /// About a task.
    pub fn task(task: TaskId) -> Self {
        About {
            task: Some(task),
            ..About::default()
        }
    }
    /// About the scheduler's own queue, with its task.
    pub fn queue(queue: u32, task: Option<TaskId>) -> Self {
        About {
            queue: Some(queue),
            task,
            ..About::default()
        }
    }
    /// Adds a second task.
    #[must_use]
    pub fn and(self, other: Option<TaskId>) -> Self {
        About { other, ..self }
    }
    /// Adds a request.
    #[must_use]
    pub fn with(self, rq: RqId) -> Self {
        About {
            rq: Some(rq),
            ..self
        }
    }
    /// Adds words.
    pub fn says(self, text: impl Into<String>) -> Reason {
        Reason {
            about: self,
            text: text.into(),
        }
    }
}

/// The figures of a single decision in words, and their subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// The subject.
    pub about: About,
    /// The text, with [`WHO`] and [`OTHER`] for tasks.
    pub text: String,
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        About::default().says(text)
    }
}
