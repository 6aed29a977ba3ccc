//! A run of a workload on the test machine, and queries for tests.

use super::task::TestMachine;
use super::world::{Call, World, drive};
use crate::fail::Outcome;
use crate::note::Mark;
use crate::plan::Plan;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A finished run.
pub struct Trial {
    /// The state of the test machine after the run.
    pub world: World,
    /// The outcome of the main task.
    pub outcome: Outcome,
}

impl Trial {
    /// Runs a workload of the registry to its end.
    ///
    /// # Panics
    /// Panics if the parameters are rejected, or if the run fails.
    pub fn run(name: &str, given: &[(&str, &str)]) -> Trial {
        let t = Trial::with(name, given, |_| {});
        assert_eq!(t.outcome, Ok(()), "{name} {given:?}");
        t
    }

    /// Runs a workload after `change` has modified the test machine. The test must check the
    /// outcome.
    ///
    /// # Panics
    /// Panics if the parameters are rejected.
    pub fn with(name: &str, given: &[(&str, &str)], change: impl FnOnce(&mut World)) -> Trial {
        let own = |p: &(&str, &str)| (p.0.to_owned(), p.1.to_owned());
        let given: Vec<(String, String)> = given.iter().map(own).collect();
        let plan = Plan::new(name, &given).unwrap_or_else(|e| panic!("{e}"));
        Trial::run_plan(plan, change)
    }

    /// Runs a plan after `change` has modified the test machine.
    pub fn run_plan(plan: Plan, change: impl FnOnce(&mut World)) -> Trial {
        let mut world = World::new(1);
        change(&mut world);
        let world = Rc::new(RefCell::new(world));
        let machine = TestMachine::new(world.clone(), "main".into());
        let task = machine.task();
        let future = Box::pin(plan.run(machine));
        world.borrow_mut().start(task, future);
        let outcome = drive(&world);
        let world = world.replace(World::new(0));
        Trial { world, outcome }
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Call> {
        self.world.log().iter().filter(move |c| c.name == name)
    }
    /// Returns the number of calls with this name.
    pub fn calls(&self, name: &str) -> usize {
        self.named(name).count()
    }
    /// Returns the number of calls with this name on paths that contain `part`.
    pub fn calls_on(&self, name: &str, part: &str) -> usize {
        self.named(name).filter(|c| c.path.contains(part)).count()
    }
    /// Returns (offset, length) of the calls with this name on paths that contain `part`.
    pub fn ranges(&self, name: &str, part: &str) -> Vec<(u64, u64)> {
        let on = self.named(name).filter(|c| c.path.contains(part));
        on.map(|c| (c.off, c.len)).collect()
    }
    /// Returns the names of all calls on paths that contain `part`, in order.
    pub fn sequence(&self, part: &str) -> Vec<&'static str> {
        let on = self.world.log().iter().filter(|c| c.path.contains(part));
        on.map(|c| c.name).collect()
    }
    /// Returns the number of bytes written by `write` and `append`.
    pub fn bytes_written(&self) -> u64 {
        let both = self.named("write").chain(self.named("append"));
        both.map(|c| c.len).sum()
    }
    /// Returns the number of bytes requested by reads.
    pub fn bytes_read(&self) -> u64 {
        self.named("read").map(|c| c.len).sum()
    }
    /// Returns the length of the longest write.
    pub fn largest_write(&self) -> u64 {
        self.named("write").map(|c| c.len).max().unwrap_or(0)
    }
    /// Returns how often a call `a` is immediately followed by a call `b` of the same task.
    pub fn before(&self, a: &str, b: &str) -> usize {
        let log = self.world.log();
        let tasks: BTreeSet<usize> = log.iter().map(|c| c.task).collect();
        let mut n = 0;
        for t in tasks {
            let of: Vec<&str> = log.iter().filter(|c| c.task == t).map(|c| c.name).collect();
            n += of.windows(2).filter(|w| w[0] == a && w[1] == b).count();
        }
        n
    }
    /// Returns the number of directories into which files were written.
    pub fn directories_written(&self) -> usize {
        let dirs: BTreeSet<&str> = self
            .named("write")
            .filter_map(|c| c.path.rsplit_once('/').map(|p| p.0))
            .collect();
        dirs.len()
    }
    /// Returns the number of tasks that made calls.
    pub fn tasks(&self) -> usize {
        let all: BTreeSet<usize> = self.world.log().iter().map(|c| c.task).collect();
        all.len()
    }
    /// Returns the principal metric.
    ///
    /// # Panics
    /// Panics if there is no metric.
    pub fn metric(&self) -> f64 {
        let all = self.world.measures().metrics();
        all.first().expect("the script notes its metric").value
    }
    /// Returns the number of operations of a kind.
    pub fn ops(&self, kind: &str) -> u64 {
        self.world.measures().count(kind)
    }
    /// Returns the times of a mark, in seconds since the start.
    pub fn marks(&self, mark: Mark) -> Vec<f64> {
        let all = self.world.measures().marks().iter();
        all.filter(|m| m.name == mark.name())
            .map(|m| m.at_ns as f64 / 1e9)
            .collect()
    }
    /// Returns the number of files and directories that still exist.
    pub fn left_over(&self) -> usize {
        self.world.left_over()
    }
}
