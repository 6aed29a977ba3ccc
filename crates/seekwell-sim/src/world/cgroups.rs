//! The cgroups of the machine. They are created before the first task. A task starts in the cgroup
//! that lists its name, or else in the cgroup of its parent.

use super::exec::World;
use crate::notation::cgroup::Cgroup;
use seekwell_core::{CgroupId, Control, IoMaxLimits};

/// A cgroup of the machine.
pub(super) struct Placed {
    id: CgroupId,
    is: Cgroup,
    /// Whether a task was placed in the cgroup.
    used: bool,
}

impl World {
    /// Creates the cgroups, parents first.
    pub(super) fn make_cgroups(&mut self, all: &[Cgroup]) {
        for is in all {
            if is.is_root() {
                let now = self.now;
                let model = is.model().map(Control::IoCostModel);
                let qos = is.qos.map(Control::IoCostQos);
                for what in model.into_iter().chain(qos) {
                    self.kernel.control(now, what);
                }
                continue;
            }
            let parent = self.placed.iter().find(|p| p.is.name == is.parent());
            let parent = parent.map_or(CgroupId::ROOT, |p| p.id);
            let (id, now) = (self.cgroup(), self.now);
            let mut tell = |what| self.kernel.control(now, what);
            tell(Control::CgroupNew(id, parent));
            if let Some(weight) = is.bfq_weight {
                tell(Control::Weight(id, weight));
            }
            if is.max != IoMaxLimits::default() {
                tell(Control::IoMax(id, is.max));
            }
            if let Some(weight) = is.weight {
                tell(Control::IoWeight(id, weight));
            }
            if is.latency_us.is_some() {
                tell(Control::IoLatency(id, is.latency_us));
            }
            self.placed.push(Placed {
                id,
                is: is.clone(),
                used: false,
            });
        }
    }
    /// Returns the cgroup of a task with this path. `parent` is the cgroup of its parent.
    pub(super) fn place_of(&mut self, path: &str, parent: CgroupId) -> CgroupId {
        let by_name = self.placed.iter_mut().find(|p| p.is.has(path));
        by_name.map_or(parent, |p| {
            p.used = true;
            p.id
        })
    }
    /// Returns a warning for each name in a cgroup that no task had.
    pub(super) fn nobody_there(&self, tasks: &[&str]) -> Vec<String> {
        let unused = self
            .placed
            .iter()
            .filter(|p| !p.used && !p.is.tasks.is_empty());
        let say = |p: &Placed| {
            let names: Vec<&str> = p.is.tasks.iter().map(String::as_str).collect();
            format!(
                "cgroup {} had no tasks: no task is called {} (the tasks were {})",
                p.is.name,
                names.join(" or "),
                tasks.join(", ")
            )
        };
        unused.map(say).collect()
    }
}
