//! The stream's file format: JSON lines. `docs/events.md` describes it.
//!
//! Each line is an object with one key that gives its type: `header` once at the start; then for
//! each run a `cell`, its `snapshot`s, its events (`e`) and an `end`.

use super::{Event, Member, More, Snapshot};
use crate::bio::{Flags, Op};
use crate::request::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the stream; raised when a reader of the previous one would be misled.
pub const VERSION: u32 = 2;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first line of a file.
    Header(Header),
    /// A run begins.
    Cell(Box<Cell>),
    /// The contents at the start of the window, and at its end.
    Snapshot(Box<Snapshot>),
    /// An event.
    E(Box<EventLine>),
    /// A run ends.
    End(Box<End>),
}

/// The first line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`VERSION`].
    pub events: u32,
    /// Version of the program.
    pub seekwell: String,
    /// Number of runs that follow.
    pub cells: u32,
}

/// A run, and the part of it that follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its number, from 0.
    pub cell: u32,
    /// The device as requested; for a file, its name without the folder.
    pub device: String,
    /// The scheduler as requested.
    pub scheduler: String,
    /// The workload.
    pub workload: String,
    /// Seed of the run.
    pub seed: u64,
    /// Begin of the window, ns on the workload's clock ([`End::clock`]).
    pub from: u64,
    /// Length of the window; `None`: up to the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Queues, arrays and disks that produce events.
    pub members: Vec<Member>,
}

/// The end of a run's part of the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Number of events written.
    pub events: u64,
    /// Number of events in the window that were left out because of the limit.
    pub left_out: u64,
    /// Start of the workload's clock, ns since the run began; the window is relative to it.
    pub clock: u64,
    /// End of the run, ns since it began.
    pub t: u64,
    /// Names of tasks, by number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<u32, String>,
    /// Why the run ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<String>,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventLine {
    /// Time, ns since the run began.
    pub t: u64,
    /// Member.
    pub q: u16,
    /// The action, a letter.
    pub a: String,
    /// Request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rq: Option<u32>,
    /// The request's new state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Bio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bio: Option<u64>,
    /// Task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    /// A second task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<u32>,
    /// Cgroup, if it is not the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<u32>,
    /// The scheduler's own queue.
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
    /// Length, sectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// The rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The kernel's name of the function of that rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Details in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// When a timer fires, or a head or die finishes, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// The request that another one took over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<u32>,
    /// Number of pieces a bio was split into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<u32>,
    /// Where a part of a bio goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<To>,
    /// When a head starts to move, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<u64>,
    /// The head's old position, sector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Flash die.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die: Option<u32>,
    /// The die's channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    /// The die's operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
}

/// Where a part of a bio goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct To {
    /// Member.
    pub q: u16,
    /// Id of the part there.
    pub bio: u64,
    /// First sector there.
    pub sector: u64,
    /// Length.
    pub n: u32,
}

/// An operation's letter.
pub const fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Flush => "F",
        Op::Discard => "D",
        Op::WriteZeroes => "Z",
    }
}

/// A request's state in a word.
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

/// Flags by their kernel names, joined by `|`.
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
    /// The line of an event.
    pub fn event(e: &Event) -> Self {
        Line::E(Box::new(e.into()))
    }
    /// The line's text as in a file, without the line break.
    ///
    /// # Panics
    /// Never: none of the types has a key or number that JSON cannot write.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }
    /// Reads a line.
    ///
    /// # Errors
    /// The position of the first fault if it is not a line of this version.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
