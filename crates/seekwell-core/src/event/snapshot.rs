//! Contents at one instant: the start of an animation or of a window of events.

use super::log::MemberId;
use crate::request::{Request, Requests, RqId, State};
use crate::time::Instant;
use crate::{Bio, Contexts};
use serde::{Deserialize, Serialize};

/// A request in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its number.
    pub rq: u32,
    /// Its bios, in ascending sector order.
    pub bios: Vec<u64>,
    /// Task of its io context.
    pub task: u32,
    /// Cgroup; the root's number is 0.
    pub cgroup: u32,
    /// Operation, as events write it.
    pub op: String,
    /// Flags, as events write them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub flags: String,
    /// First sector.
    pub sector: u64,
    /// Length.
    pub n: u32,
    /// Where it is, as events write it.
    pub state: String,
    /// Time since it was created, ns.
    pub age_ns: u64,
    /// Time since the device has had it, ns, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
}

/// A bio that waits for a request or tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asleep {
    /// Its id.
    pub bio: u64,
    /// The sleeping task.
    pub task: u32,
    /// Operation.
    pub op: String,
    /// First sector.
    pub sector: u64,
    /// Length.
    pub n: u32,
    /// Time since it arrived, ns.
    pub age_ns: u64,
}

/// An armed timer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The slot's name.
    pub slot: String,
    /// When it fires, ns.
    pub until: u64,
}

/// One member at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Time since the run began, ns.
    pub t: u64,
    /// The member.
    pub q: MemberId,
    /// All requests, by number: at their submitter, sorted, on their way, in the device.
    pub requests: Vec<Held>,
    /// Bios that wait for a request or tag, the longest wait first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asleep: Vec<Asleep>,
    /// Armed timers of the scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<Waiting>,
    /// The scheduler's own state, as `explain` prints it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler: String,
    /// The device's state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
}

impl Snapshot {
    /// The snapshot of a member with its requests.
    pub fn of(now: Instant, q: MemberId, rqs: &Requests, iocs: &Contexts) -> Self {
        let one = |(i, r): (RqId, &Request)| {
            let flight = r.state == State::InFlight;
            Held {
                rq: i.0,
                bios: rqs.bios(i).map(|b| b.0.id.0).collect(),
                task: iocs.get(r.ioc).task.0,
                cgroup: r.cgroup.0,
                op: super::wire::op_name(r.op).to_owned(),
                flags: super::wire::flag_names(r.flags),
                sector: r.sector.0,
                n: r.sectors.0,
                state: super::wire::state_name(r.state).to_owned(),
                age_ns: now.since(r.start).0,
                device_ns: flight.then(|| now.since(r.issue).0),
            }
        };
        Snapshot {
            t: now.since_start(),
            q,
            requests: rqs.iter().map(one).collect(),
            ..Snapshot::default()
        }
    }
}

impl Asleep {
    /// A bio that arrived at `since`.
    pub fn new(now: Instant, bio: &Bio, since: Instant) -> Self {
        Asleep {
            bio: bio.id.0,
            task: bio.task.0,
            op: super::wire::op_name(bio.op).to_owned(),
            sector: bio.sector.0,
            n: bio.sectors.0,
            age_ns: now.since(since).0,
        }
    }
}
