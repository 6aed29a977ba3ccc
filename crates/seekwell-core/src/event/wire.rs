//! The file format of the event stream: JSON lines. `docs/events.md` describes it.
//!
//! Each line is an object with one key, which is the type of the line. The file begins with one
//! `header`. For each run there follow a `cell`, its `snapshot`s, its events (`e`) and an `end`.

use super::{Event, Member, More, Snapshot};
use crate::bio::{Flags, Op};
use crate::request::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the file format. It is incremented when a program for the previous version would
/// misread the file.
pub const VERSION: u32 = 2;

/// One line of a stream file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first line of a file.
    Header(Header),
    /// The beginning of a run.
    Cell(Box<Cell>),
    /// The contents at the start and at the end of the window.
    Snapshot(Box<Snapshot>),
    /// An event.
    E(Box<EventLine>),
    /// The end of a run.
    End(Box<End>),
}

/// The first line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the file format, [`VERSION`].
    pub events: u32,
    /// Version of Seekwell.
    pub seekwell: String,
    /// Number of runs in the file.
    pub cells: u32,
}

/// A run, and the window of it that the file contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Number of the run in the file, from 0.
    pub cell: u32,
    /// The device as requested. For a file: its name without the folder.
    pub device: String,
    /// The scheduler as requested.
    pub scheduler: String,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the run.
    pub seed: u64,
    /// Start of the window, in ns on the workload's clock ([`End::clock`]).
    pub from: u64,
    /// Length of the window in ns. `None`: up to the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The members (queues, arrays and disks) that produce events.
    pub members: Vec<Member>,
}

/// The end of a run in the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Number of events written.
    pub events: u64,
    /// Number of events in the window that were left out because the limit was reached.
    pub left_out: u64,
    /// Start of the workload's clock, in ns since the run began. The window is relative to it.
    pub clock: u64,
    /// End of the run, in ns since it began.
    pub t: u64,
    /// Names of tasks, by number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<u32, String>,
    /// The reason why the run ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<String>,
}

/// An event in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventLine {
    /// Time in ns since the run began.
    pub t: u64,
    /// Number of the member.
    pub q: u16,
    /// Letter of the action.
    pub a: String,
    /// Number of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rq: Option<u32>,
    /// The request's new state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Id of the bio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bio: Option<u64>,
    /// Number of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    /// Number of the second task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<u32>,
    /// Number of the cgroup; absent for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<u32>,
    /// Number of the scheduler's own queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Operation, for events about a bio, request or command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// Flags.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub flags: String,
    /// First sector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sector: Option<u64>,
    /// Length in sectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// Name of the rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Name of the kernel function of that rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Details in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Name of the timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// Time at which a timer fires, or at which a head or die finishes, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Number of the request that another request took over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<u32>,
    /// Number of parts that a bio was split into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<u32>,
    /// The member that a part of a bio goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<To>,
    /// Time at which a head starts to move, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<u64>,
    /// Position of the head before the move, a sector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Number of the flash die.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die: Option<u32>,
    /// Number of the die's channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    /// Name of the die's operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
}

/// The member that a part of a bio goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct To {
    /// Number of the member.
    pub q: u16,
    /// Id of the part in that member.
    pub bio: u64,
    /// First sector of the part in that member.
    pub sector: u64,
    /// Length of the part in sectors.
    pub n: u32,
}

/// Returns the letter of an operation.
pub const fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Flush => "F",
        Op::Discard => "D",
        Op::WriteZeroes => "Z",
    }
}

/// Returns the name of a request's state.
pub const fn state_name(s: State) -> &'static str {
    match s {
        State::Free => "free",
        State::Plugged => "plugged",
        State::Sorted => "sorted",
        State::Dispatched => "dispatched",
        State::Started => "started",
        State::InFlight => "in_flight",
    }
}

/// Returns the kernel names of the flags, joined by `|`.
pub fn flag_names(flags: Flags) -> String {
    let names: Vec<_> = flags.iter_names().map(|f| f.0).collect();
    names.join("|")
}

impl From<&Event> for EventLine {
    fn from(e: &Event) -> Self {
        let about = e.rq.is_some() || e.bio.is_some() || e.sectors.0 > 0;
        let about = about && e.rule.is_none();
        let mut l = EventLine {
            t: e.at.since_start(),
            q: e.member.0,
            a: e.action.letter().to_string(),
            rq: e.rq.map(|r| r.0),
            state: e.state.map(|s| state_name(s).to_owned()),
            bio: e.bio.map(|b| b.0),
            task: e.task.map(|t| t.0),
            other: e.other.map(|t| t.0),
            cgroup: e.cgroup.map(|c| c.0).filter(|c| *c > 0),
            queue: e.queue,
            op: about.then(|| op_name(e.op).to_owned()),
            flags: flag_names(e.flags),
            sector: about.then_some(e.sector.0),
            n: about.then_some(e.sectors.0),
            rule: e.rule.map(|r| r.id.to_owned()),
            kernel: e.rule.map(|r| r.kernel.to_owned()),
            text: e.detail.clone(),
            ..EventLine::default()
        };
        match e.more {
            More::None => {}
            More::Timer { slot, until } => {
                (l.slot, l.until) = (Some(slot.to_owned()), Some(until.since_start()));
            }
            More::Gone(rq) => l.gone = Some(rq.0),
            More::Pieces(n) => l.pieces = Some(n),
            More::To {
                member,
                bio,
                sector,
                sectors,
            } => {
                l.to = Some(To {
                    q: member.0,
                    bio: bio.0,
                    sector: sector.0,
                    n: sectors.0,
                });
            }
            More::Head { from, begin, until } => {
                (l.from, l.until) = (Some(from.0), Some(until.since_start()));
                l.begin = Some(begin.since_start());
            }
            More::Die {
                die,
                channel,
                doing,
                until,
            } => {
                (l.die, l.channel) = (Some(die), Some(channel));
                (l.doing, l.until) = (Some(doing.to_owned()), Some(until.since_start()));
            }
        }
        l
    }
}

impl Line {
    /// Returns the line of an event.
    pub fn event(e: &Event) -> Self {
        Line::E(Box::new(e.into()))
    }
    /// Returns the text of the line as in a file, without the line break.
    ///
    /// # Panics
    /// Never, because all types have only keys and numbers that JSON can represent.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }
    /// Parses a line.
    ///
    /// # Errors
    /// The position of the first error, if the text is not a line of this version.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
