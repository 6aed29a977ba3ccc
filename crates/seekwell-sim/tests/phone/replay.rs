//! External view of a run: the queued requests at each dispatch, and the stated reasons.

use seekwell_core::{Action, Instant};
use seekwell_microscope::{Case, Outcome, run};
use seekwell_sched::find;
use std::collections::BTreeMap;

/// Runs a case and keeps all events.
pub fn run_case(case: &Case) -> Outcome {
    match run(case, true) {
        Ok(out) => out,
        Err(e) => panic!("{e}"),
    }
}

/// A bio as submitted; here each bio is a request.
#[derive(Clone, Debug)]
pub struct Request {
    pub pid: u64,
    pub op: String,
    pub sector: u64,
    /// When the scheduler received it.
    pub at: Instant,
}

impl Request {
    pub fn is_write(&self) -> bool {
        self.op != "R"
    }
    pub fn is_sync(&self) -> bool {
        self.op != "W"
    }
}

/// A dispatch by the scheduler.
#[derive(Clone, Debug)]
pub struct Decision {
    pub at: Instant,
    pub id: u64,
    /// Rules named directly before, with their details.
    pub rules: Vec<(&'static str, String)>,
    /// The queued requests, including this one, in order of insertion.
    pub queued: Vec<u64>,
}

impl Decision {
    pub fn by(&self, rule: &str) -> bool {
        self.rules.iter().any(|r| r.0 == rule)
    }
}

/// The run of a case in which each bio is a request.
pub struct Replay {
    pub requests: BTreeMap<u64, Request>,
    pub decisions: Vec<Decision>,
    pub out: Outcome,
}

impl Replay {
    pub fn of(case: &Case) -> Replay {
        assert_eq!(case.nomerges, 2, "bios must be requests");
        let out = run_case(case);
        let mut requests = BTreeMap::new();
        for row in case.input.iter().filter(|r| r.len() == 6) {
            let number = |k: usize| row[k].as_u64().unwrap_or(0);
            requests.insert(
                number(1),
                Request {
                    pid: number(2),
                    op: row[3].as_str().unwrap_or("").to_owned(),
                    sector: number(4),
                    at: Instant::FAR,
                },
            );
        }
        let (mut queued, mut rules, mut decisions) = (Vec::new(), Vec::new(), Vec::new());
        for step in &out.events {
            let id = step.bios.first().map_or(0, |b| b.0);
            match step.event.action {
                Action::Why => {
                    rules.push((step.event.rule_id(), step.event.detail.clone()));
                    continue;
                }
                Action::Insert => {
                    queued.push(id);
                    if let Some(r) = requests.get_mut(&id) {
                        r.at = step.event.at;
                    }
                }
                Action::Elevator => {
                    decisions.push(Decision {
                        at: step.event.at,
                        id,
                        rules: std::mem::take(&mut rules),
                        queued: queued.clone(),
                    });
                    queued.retain(|&q| q != id);
                }
                _ => {}
            }
            rules.clear();
        }
        assert_eq!(decisions.len(), requests.len(), "each goes out once");
        Replay {
            requests,
            decisions,
            out,
        }
    }
    /// The oldest queued request for which `f` holds.
    pub fn oldest(&self, d: &Decision, f: impl Fn(&Request) -> bool) -> Option<u64> {
        d.queued.iter().copied().find(|q| f(&self.requests[q]))
    }
}

/// Service time of a request, in ns.
pub fn service_ns(case: &Case) -> u64 {
    (case.device.service_us * 1000.0) as u64
}

/// A time in which a device of depth 1 was idle.
pub struct Gap {
    pub from: Instant,
    pub until: Instant,
    /// The requests that were queued when it began.
    pub queued: Vec<u64>,
}

/// The gaps between requests at depth 1, in order.
pub fn gaps(out: &Outcome, service_ns: u64) -> Vec<Gap> {
    assert!(service_ns > 0);
    let mut inserted = Vec::new();
    let (mut gone, mut gaps) = (Vec::new(), Vec::new());
    let mut idle_from: Option<Instant> = None;
    for step in &out.events {
        let id = step.bios.first().map_or(0, |b| b.0);
        let at = step.event.at;
        match step.event.action {
            Action::Insert => inserted.push((at, id)),
            Action::Issue => {
                if let Some(from) = idle_from
                    && at > from
                {
                    let queued = inserted
                        .iter()
                        .filter(|i| i.0 < from && !gone.contains(&i.1))
                        .map(|i| i.1)
                        .collect();
                    gaps.push(Gap {
                        from,
                        until: at,
                        queued,
                    });
                }
                gone.push(id);
                idle_from = Some(Instant(at.0 + service_ns));
            }
            _ => {}
        }
    }
    gaps
}

/// A tunable's value in a case: as set, otherwise the default.
pub fn tunable(case: &Case, name: &str) -> u64 {
    let text = match case.tunables.get(name) {
        Some(v) => v.as_str().unwrap_or("").to_owned(),
        None => {
            let found = find(&case.elevator).and_then(|(info, version, _)| {
                (info.tunables)(version).iter().find(|t| t.name == name)
            });
            found.map_or(String::new(), |t| t.default.to_owned())
        }
    };
    match text.parse() {
        Ok(v) => v,
        Err(_) => panic!("{name} of {} is `{text}`", case.elevator),
    }
}

/// The jiffy of an instant, counted from 1000 s.
pub fn jiffy(case: &Case, at: Instant) -> u64 {
    at.since_start() * u64::from(case.hz) / 1_000_000_000
}

/// A tunable in ms, converted to jiffies. Written values round up; defaults round down.
pub fn ms_j(case: &Case, name: &str) -> u64 {
    let (ms, hz) = (tunable(case, name), u64::from(case.hz));
    if case.tunables.contains_key(name) {
        (ms * hz).div_ceil(1000)
    } else {
        ms * hz / 1000
    }
}
