//! Evidence about the published differences, from stored results of the robustness checks:
//! published tests without a claimed cause, and runs in the order of the table's columns. A stored
//! result is used only if its runs are equal to those of the current quick form.

use super::Publication;
use super::figures::{Pair, Published};
use super::full;
use super::guard::Kept;
use super::guard::ablations::{self, Taken};
use super::guard::order::{self, Orders};
use super::ours::Cell;
use std::collections::BTreeMap;

const ABLATIONS: &str = include_str!("../../published/guards/all-guard-ablations.jsonl");
const ORDER: &str = include_str!("../../published/guards/phoronix-2012-guard-order.jsonl");

/// The stored evidence about the differences of one publication.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    taken: Vec<Taken>,
    orders: Option<Orders>,
    /// Results of the full form, as far as they are stored.
    full: Vec<Cell>,
    /// Device of each system; the key is the system's name in the experiment.
    devices: BTreeMap<String, String>,
}

impl Evidence {
    /// Reads the stored evidence of a publication.
    pub fn read(p: &Publication) -> Evidence {
        let cells = p.experiment(true).map(|e| e.cells).unwrap_or_default();
        let device = |c: &seekwell_lab::experiment::CellPlan| {
            let system = c.cell.machine.split(", ").next()?.to_owned();
            Some((system, c.specs.first()?.device.spec.clone()))
        };
        Evidence {
            taken: ablations::known(p, &Kept::read(ABLATIONS)),
            orders: order::known(p, &Kept::read(ORDER)),
            full: full::carried(p).unwrap_or_default(),
            devices: cells.iter().filter_map(device).collect(),
        }
    }
    /// Returns the result of removing the cause of a group. `with` is what the test adds to the
    /// quick form; it is empty if the test adds nothing.
    pub fn of_cause(&self, group: &str, with: &str) -> Option<&Taken> {
        let mut all = self.taken.iter();
        all.find(|t| {
            t.group == group && t.with.starts_with(with) && t.with.is_empty() == with.is_empty()
        })
    }
    /// Returns the ratio of one scheduler on a new drive to the same scheduler on a worn drive: the
    /// minimum and maximum over all systems of the tests whose name starts with `test`.
    pub fn worn(&self, test: &str) -> Option<(f64, f64)> {
        let own = self.orders.iter().flat_map(|o| &o.pairs);
        let own = own
            .filter(|o| o.test.starts_with(test))
            .filter_map(|o| o.states[1]);
        own.fold(None, |all, x| {
            let (least, most) = all.unwrap_or((x, x));
            Some((least.min(x), most.max(x)))
        })
    }
    /// Returns the largest amount, in GB, that all tests of one system wrote in column order.
    pub fn written_gb(&self) -> Option<f64> {
        let all = self.orders.iter().flat_map(|o| o.written_gb.values());
        all.copied().max_by(f64::total_cmp)
    }
    /// Returns whether the stored evidence is complete for the current runs.
    pub fn whole(&self, p: &Publication) -> bool {
        let flash = |c: &Published| {
            let device = self.devices.get(&c.system);
            device.is_some_and(|d| d.starts_with("ssd:")) && c.pairs.iter().any(|p| p.differs())
        };
        let orders = self.orders.is_some() || !p.published().iter().any(flash);
        self.taken.len() == ablations::causes(p) && orders
    }
    /// Returns the prediction of the full form for a pair: first value divided by second.
    pub(super) fn full(&self, p: &Published, pair: &Pair) -> Option<f64> {
        let same = |c: &&Cell| {
            let own = &c.published;
            (&own.system, &own.workload, &own.metric) == (&p.system, &p.workload, &p.metric)
        };
        self.full.iter().find(same)?.pair(pair)
    }
    /// Describes the result of removing the cause of a group from a published test.
    pub(super) fn taken(&self, group: &str) -> Option<String> {
        let two = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.2}"));
        let said = |t: &Taken| {
            let with = match t.with {
                "" => String::new(),
                with => format!(" with {with}"),
            };
            format!(
                "{} of {}{with} {}, {} {} ({})",
                t.pair,
                t.test,
                two(t.on),
                t.without,
                two(t.off),
                t.left().word()
            )
        };
        let own = self.taken.iter().filter(|t| t.group == group);
        let all: Vec<String> = own.map(said).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
    /// Describes how the order of runs can affect the difference of a pair.
    pub(super) fn order(&self, p: &Published, pair: &Pair) -> String {
        let name = |i: usize| p.sides[i].scheduler.as_str();
        let pair = format!("{} : {}", name(pair.one), name(pair.other));
        let own = self.orders.iter().flat_map(|o| &o.pairs).find(|o| {
            (&o.system, &o.test, &o.metric, &o.pair) == (&p.system, &p.workload, &p.metric, &pair)
        });
        let device = self.devices.get(&p.system).map_or("", |d| d.as_str());
        match own {
            Some(o) if o.state_could() => {
                format!(
                    "{}: the drive's state alone could cause it",
                    o.ratios_text()
                )
            }
            Some(o) => format!(
                "{}: the drive's state alone does not cause it",
                o.ratios_text()
            ),
            None if device.starts_with("hdd:") => {
                "not published; writing does not age a disk, so our results are the same in any \
                 order"
                    .to_owned()
            }
            None => "not published, and not simulated for this drive".to_owned(),
        }
    }
}
