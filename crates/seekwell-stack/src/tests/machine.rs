//! A modelled kernel with a disk that keeps a log, and programs as lists of calls.

use super::disk::{Disk, Line, Shared};
use crate::{Call, Config, Kernel, Ret, TaskConfig};
use seekwell_core::{Instant, Nanos, TaskId};
use std::cell::RefCell;
use std::rc::Rc;

pub struct Machine {
    pub kernel: Kernel,
    pub disk: Rc<RefCell<Shared>>,
    pub now: Instant,
    out: Vec<(TaskId, Ret)>,
}

impl Machine {
    pub fn new(config: Config, disk: Disk) -> Self {
        let shared = disk.shared.clone();
        Machine {
            kernel: Kernel::new(config, Box::new(disk)),
            disk: shared,
            now: Instant::START,
            out: Vec::new(),
        }
    }
    pub fn task(&mut self, name: &str) -> TaskId {
        let c = TaskConfig {
            name: name.to_owned(),
            ..TaskConfig::default()
        };
        self.kernel.task_new(self.now, c)
    }
    /// Makes one call and runs it to its end.
    pub fn call(&mut self, t: TaskId, call: Call) -> Ret {
        self.kernel.call(self.now, t, call);
        loop {
            let next = self.kernel.next_event().expect("the call ends");
            self.kernel.advance(next, &mut self.out);
            self.now = self.kernel.now();
            if let Some((who, ret)) = self.out.pop() {
                assert_eq!(who, t);
                return ret;
            }
        }
    }
    /// Advances time without calls.
    pub fn idle(&mut self, d: Nanos) {
        let to = self.now + d;
        self.kernel.advance(to, &mut self.out);
        assert!(self.out.is_empty());
        self.now = to;
    }
    /// Runs programs in parallel. `next(i, result of the last call)` returns the next call of
    /// program `i`, or `None` at the program's end.
    pub fn run(
        &mut self,
        tasks: &[TaskId],
        mut next: impl FnMut(usize, Instant, Option<Ret>) -> Option<Call>,
    ) {
        let mut alive = 0;
        let end = self.now + Nanos::from_secs(3600);
        for (i, t) in tasks.iter().enumerate() {
            if let Some(c) = next(i, self.now, None) {
                self.kernel.call(self.now, *t, c);
                alive += 1;
            }
        }
        let mut out = Vec::new();
        while alive > 0 {
            let at = self.kernel.next_event().expect("somebody goes on");
            self.kernel.advance(at, &mut out);
            self.now = self.kernel.now();
            assert!(
                self.now < end,
                "a call never returned: {}",
                self.kernel.stuck()
            );
            for (t, ret) in out.drain(..) {
                let i = tasks.iter().position(|x| *x == t).expect("one of ours");
                match next(i, self.now, Some(ret)) {
                    Some(c) => self.kernel.call(self.now, t, c),
                    None => alive -= 1,
                }
            }
        }
    }
    /// Takes the log of the disk's requests and clears it.
    pub fn take_log(&self) -> Vec<Line> {
        std::mem::take(&mut self.disk.borrow_mut().log)
    }
}

/// Returns a machine of the kernel's time on which CPU time is free.
pub fn free_cpu(era: seekwell_core::Era) -> Config {
    let mut c = Config::new(era);
    let k = &mut c.constants;
    for ns in [
        &mut k.call_ns,
        &mut k.copy_page_ns,
        &mut k.page_new_ns,
        &mut k.page_drop_ns,
        &mut k.lookup_ns,
        &mut k.create_ns,
        &mut k.mkdir_ns,
        &mut k.bio_ns,
        &mut k.instructions_ns,
        &mut k.fault_ns,
    ] {
        *ns = 0;
    }
    c
}
