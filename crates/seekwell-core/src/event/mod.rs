//! The one event stream: blktrace's letters, plus the scheduler's reasons and timers and what the
//! device did.
//!
//! When nobody listens a push is one test of a bool. `docs/events.md` is the page on the stream as
//! files have it ([`wire`]).

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
    /// Two requests that touch are one from now on: `rq` goes on, [`More::Gone`] is gone.
    Join,
    /// The device is done with the data of a flush sequence; a flush follows, then C.
    Part,
    /// A scheduler armed a timer (again, if it was armed).
    Arm,
    /// It took a timer back.
    Disarm,
    /// A scheduler timer fired.
    Timer,
    /// A message of the scheduler: its reason.
    Why,
    /// A device moves its head and transfers.
    Head,
    /// A device, or what stands for one, answers out of a cache.
    CacheHit,
    /// A die of flash begins something.
    Flash,
}

impl Action {
    /// All of them.
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
    /// blktrace's letter; `E`, `T`, `m` and small letters for what is ours.
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

/// What only some events have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum More {
    /// Nothing.
    #[default]
    None,
    /// A timer: its slot's name, and when it fires, would have fired, or was due.
    Timer {
        /// As the kernel calls the timer.
        slot: &'static str,
        /// When.
        until: Instant,
    },
    /// The request that another took over (join, or a merge of a request that was never inside).
    Gone(RqId),
    /// A bio was cut into so many pieces.
    Pieces(u32),
    /// A part of a bio goes to a member.
    To {
        /// The member.
        member: MemberId,
        /// Its name there.
        bio: BioId,
        /// First sector there; [`Event::sector`] is that of the whole bio.
        sector: Sector,
        /// Length of the part.
        sectors: Sectors,
    },
    /// A head goes from one sector to another and reads or writes there; the event's sectors are
    /// what is transferred.
    Head {
        /// Where it stands.
        from: Sector,
        /// When it sets out: now, or when what it does has come to an end.
        begin: Instant,
        /// When the last sector has passed.
        until: Instant,
    },
    /// What a die of flash does.
    Die {
        /// Which one.
        die: u32,
        /// Channel it is on.
        channel: u32,
        /// In a word.
        doing: &'static str,
        /// When it ends, if nothing comes between.
        until: Instant,
    },
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// Where: which queue, array, guest or disk.
    pub member: MemberId,
    /// What.
    pub action: Action,
    /// Request concerned.
    pub rq: Option<RqId>,
    /// Where that is from now on.
    pub state: Option<State>,
    /// Bio concerned (its first, for requests).
    pub bio: Option<BioId>,
    /// Task concerned: that of the io context; of a reason or timer, whom it is about.
    pub task: Option<TaskId>,
    /// A second one, of a reason about two.
    pub other: Option<TaskId>,
    /// Cgroup concerned.
    pub cgroup: Option<CgroupId>,
    /// Queue of the scheduler's own that a reason is about, by its number there.
    pub queue: Option<u32>,
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
    /// What only some have.
    pub more: More,
    /// Details in words; [`WHO`] and [`OTHER`] in it stand for the tasks, see [`Event::text`].
    pub detail: String,
}

/// Stands in a detail for [`Event::task`].
pub const WHO: &str = "{who}";
/// Stands in a detail for [`Event::other`].
pub const OTHER: &str = "{other}";

impl Event {
    /// An event that says nothing yet but when and what.
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
    /// About a bio.
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
    /// About a command to a device.
    pub fn of_command(at: Instant, action: Action, c: &crate::Command) -> Self {
        Event {
            rq: Some(RqId(c.id)),
            op: c.op,
            sector: c.sector,
            sectors: c.sectors,
            ..Event::new(at, action)
        }
    }
    /// Name of the rule that decided; empty where none did.
    pub fn rule_id(&self) -> &'static str {
        self.rule.map_or("", |r| r.id)
    }
    /// The detail with tasks by their names. A queue without a task goes by its number.
    pub fn text(&self, name: impl Fn(TaskId) -> String) -> String {
        words(&self.detail, self.task, self.other, self.queue, name)
    }
}

/// A detail in words: [`WHO`] and [`OTHER`] replaced.
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

/// Whom or what a reason or a timer is about: as much as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// A request; its task and cgroup follow from it.
    pub rq: Option<RqId>,
    /// An io context; task and cgroup follow from it.
    pub ioc: Option<IocId>,
    /// A task.
    pub task: Option<TaskId>,
    /// A second task.
    pub other: Option<TaskId>,
    /// A cgroup.
    pub cgroup: Option<CgroupId>,
    /// A queue of the scheduler's own, by number.
    pub queue: Option<u32>,
}

impl About {
    /// A request.
    pub fn rq(rq: RqId) -> Self {
        About {
            rq: Some(rq),
            ..About::default()
        }
    }
    /// An io context.
    pub fn ioc(ioc: IocId) -> Self {
        About {
            ioc: Some(ioc),
            ..About::default()
        }
    }
    /// A task.
    pub fn task(task: TaskId) -> Self {
        About {
            task: Some(task),
            ..About::default()
        }
    }
    /// A queue of the scheduler's own, and whose it is.
    pub fn queue(queue: u32, task: Option<TaskId>) -> Self {
        About {
            queue: Some(queue),
            task,
            ..About::default()
        }
    }
    /// And a second task.
    #[must_use]
    pub fn and(self, other: Option<TaskId>) -> Self {
        About { other, ..self }
    }
    /// And a request.
    #[must_use]
    pub fn with(self, rq: RqId) -> Self {
        About {
            rq: Some(rq),
            ..self
        }
    }
    /// With words.
    pub fn says(self, text: impl Into<String>) -> Reason {
        Reason {
            about: self,
            text: text.into(),
        }
    }
}

/// Figures of a single decision, in words, and what they are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// Whom.
    pub about: About,
    /// In words, with [`WHO`] and [`OTHER`] for tasks.
    pub text: String,
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        About::default().says(text)
    }
}
