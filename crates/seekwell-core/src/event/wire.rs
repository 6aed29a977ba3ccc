//! The stream as files have it: JSON lines. `docs/events.md` is the page on it.
//!
//! Each line is an object with one key that says what it is: `header`, once and first; then for
//! each run a `cell`, its `snapshot`s, its events (`e`) and an `end`.

use super::{Event, Member, More, Snapshot};
use crate::bio::{Flags, Op};
use crate::request::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the stream: raised when a reader of the last one would be misled.
pub const VERSION: u32 = 2;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first line of a file.
    Header(Header),
    /// A run begins.
    Cell(Box<Cell>),
    /// What is inside where the window begins, and where it ends.
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
    /// Runs that follow.
    pub cells: u32,
}

/// What ran, and what of it follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Counted from 0.
    pub cell: u32,
    /// The device as it was asked for; of a file, its name without the folder.
    pub device: String,
    /// The scheduler as it was asked for.
    pub scheduler: String,
    /// The workload.
    pub workload: String,
    /// Seed of the run.
    pub seed: u64,
    /// The window, ns of the workload's clock ([`End::clock`]): its begin.
    pub from: u64,
    /// Its length; none: to the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Queues, arrays and disks that events come from.
    pub members: Vec<Member>,
}

/// How a run's part of the stream ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Events written.
    pub events: u64,
    /// Events of the window left out because of the limit.
    pub left_out: u64,
    /// When the workload's clock started, ns since the run began: what the window counts from.
    pub clock: u64,
    /// The run was over then, ns since it began.
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
    /// When, ns since the run began.
    pub t: u64,
    /// Member.
    pub q: u16,
    /// What, a letter.
    pub a: String,
    /// Request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rq: Option<u32>,
    /// Where that is from now on.
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
    /// Queue of the scheduler's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// Operation, of events about a bio, request or command.
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
    /// Rule that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What the kernel calls the function that rule lies in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Details in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// When a timer fires, a head or a die is done, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Request that another took over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<u32>,
    /// Pieces a bio was cut into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<u32>,
    /// Where a part of a bio goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<To>,
    /// When a head sets out, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<u64>,
    /// Where the head stood, sector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Die of flash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die: Option<u32>,
    /// Its channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
}

/// Where a part of a bio goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct To {
    /// Member.
    pub q: u16,
    /// Name of the part there.
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

/// A request's place in a word.
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
    /// An event.
    pub fn event(e: &Event) -> Self {
        Line::E(Box::new(e.into()))
    }
    /// As it stands in a file, without the end of the line.
    ///
    /// # Panics
    /// Never: none of the types has a key or number that JSON cannot write.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data")
    }
    /// Reads a line.
    ///
    /// # Errors
    /// What is no line of this version, with the place in it.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
