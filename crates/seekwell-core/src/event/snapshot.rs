//! Snapshots: the contents of a member at one instant. An animation or a window of events starts
//! with a snapshot.

use super::log::MemberId;
use crate::request::{Request, Requests, RqId, State};
use crate::time::Instant;
use crate::{Bio, Contexts};
use serde::{Deserialize, Serialize};

/// A request in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Number of the request.
    pub rq: u32,
    /// Ids of its bios, in ascending order of sectors.
    pub bios: Vec<u64>,
    /// Number of the task of its io context.
    pub task: u32,
    /// Number of its cgroup; the root is 0.
    pub cgroup: u32,
    /// Operation, written as in events.
    pub op: String,
    /// Flags, written as in events.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub flags: String,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub n: u32,
    /// State of the request, written as in events.
    pub state: String,
    /// Time since the request was created, ns.
    pub age_ns: u64,
    /// Time since the device received the request, ns; `None` if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
}

/// A bio that waits for a request or a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asleep {
    /// Id of the bio.
    pub bio: u64,
    /// Number of the task that sleeps.
    pub task: u32,
    /// Operation.
    pub op: String,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub n: u32,
    /// Time since the bio arrived, ns.
    pub age_ns: u64,
}

/// An armed timer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Name of the timer slot.
    pub slot: String,
    /// Time at which the timer fires, ns.
    pub until: u64,
}

/// The contents of one member at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Time since the run began, ns.
    pub t: u64,
    /// Number of the member.
    pub q: MemberId,
    /// All requests, by number: at their submitter, in the scheduler, dispatched, or in the device.
    pub requests: Vec<Held>,
    /// Bios that wait for a request or a tag. The bio that has waited longest comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asleep: Vec<Asleep>,
    /// Armed timers of the scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<Waiting>,
    /// State of the scheduler, as `explain` prints it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scheduler: String,
    /// State of the device.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
}

impl Snapshot {
    /// Returns the snapshot of a member with its requests.
    pub fn take(now: Instant, q: MemberId, rqs: &Requests, iocs: &Contexts) -> Self {
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
    /// Returns the entry of a bio that arrived at `since`.
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
