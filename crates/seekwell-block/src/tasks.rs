//! What a queue knows of tasks: their io contexts, made at the first bio and told to the scheduler,
//! and what was said about a task before that.

use seekwell_core::{CgroupId, IoPrio, IocId, Policy, Side, TaskId};
use seekwell_sched::cx::Cgroup;
use seekwell_sched::{CgroupEvent, Cx, IocEvent, Scheduler};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct TaskInfo {
    ioprio: IoPrio,
    nice: i8,
    policy: Policy,
    cgroup: CgroupId,
    shares: Option<TaskId>,
}

/// Tasks of one queue.
#[derive(Debug, Default)]
pub struct Tasks {
    info: BTreeMap<TaskId, TaskInfo>,
    attached: Side<bool>,
}

impl Tasks {
    fn info(&mut self, task: TaskId) -> &mut TaskInfo {
        self.info.entry(task).or_default()
    }

    /// The io context of a task, made and told to the scheduler if need be.
    pub fn ioc_of<S: Scheduler + ?Sized>(
        &mut self,
        cx: &mut Cx,
        sched: &mut S,
        task: TaskId,
    ) -> IocId {
        let ioc = match cx.iocs.find(task) {
            Some(ioc) => ioc,
            None => self.make(cx, sched, task),
        };
        if !std::mem::replace(self.attached.at(ioc.idx()), true) {
            sched.ioc_event(cx, ioc, IocEvent::Attach);
        }
        ioc
    }
    fn make<S: Scheduler + ?Sized>(&mut self, cx: &mut Cx, sched: &mut S, task: TaskId) -> IocId {
        let info = self.info.get(&task).copied().unwrap_or_default();
        if let Some(with) = info.shares.filter(|w| *w != task) {
            let ioc = match cx.iocs.find(with) {
                Some(ioc) => ioc,
                None => self.create(cx, with),
            };
            cx.iocs.share(task, ioc);
            if !std::mem::replace(self.attached.at(ioc.idx()), true) {
                sched.ioc_event(cx, ioc, IocEvent::Attach);
            }
            return ioc;
        }
        self.create(cx, task)
    }
    fn create(&mut self, cx: &mut Cx, task: TaskId) -> IocId {
        let info = self.info.get(&task).copied().unwrap_or_default();
        let ioc = cx.iocs.create(task, info.ioprio, info.cgroup);
        let c = cx.iocs.get_mut(ioc);
        (c.nice, c.policy) = (info.nice, info.policy);
        *self.attached.at(ioc.idx()) = false;
        ioc
    }
    /// A context for requests the scheduler never sees.
    pub fn silent_ioc(&mut self, cx: &mut Cx, task: TaskId) -> IocId {
        match cx.iocs.find(task) {
            Some(ioc) => ioc,
            None => self.create(cx, task),
        }
    }

    fn tell<S: Scheduler + ?Sized>(
        &mut self,
        cx: &mut Cx,
        sched: &mut S,
        task: TaskId,
        what: IocEvent,
    ) {
        if let Some(ioc) = cx.iocs.find(task)
            && *self.attached.at(ioc.idx())
        {
            sched.ioc_event(cx, ioc, what);
        }
    }
    /// The index of a dead context without requests is given back.
    pub fn release_if_unused<S: Scheduler + ?Sized>(
        &mut self,
        cx: &mut Cx,
        sched: &mut S,
        ioc: IocId,
    ) {
        let c = cx.iocs.get(ioc);
        if c.alive || c.requests > 0 {
            return;
        }
        if std::mem::take(self.attached.at(ioc.idx())) {
            sched.ioc_event(cx, ioc, IocEvent::Release);
        }
        cx.iocs.release(ioc);
    }
    /// The task exits.
    pub fn exit<S: Scheduler + ?Sized>(&mut self, cx: &mut Cx, sched: &mut S, task: TaskId) {
        self.info.remove(&task);
        let Some(ioc) = cx.iocs.find(task) else {
            return;
        };
        if cx.iocs.leave(task, ioc) {
            if *self.attached.at(ioc.idx()) {
                sched.ioc_event(cx, ioc, IocEvent::Exit);
            }
            self.release_if_unused(cx, sched, ioc);
        }
    }
    /// ioprio_set.
    pub fn prio<S: Scheduler + ?Sized>(
        &mut self,
        cx: &mut Cx,
        sched: &mut S,
        task: TaskId,
        ioprio: IoPrio,
    ) {
        self.info(task).ioprio = ioprio;
        if let Some(ioc) = cx.iocs.find(task) {
            let c = cx.iocs.get_mut(ioc);
            c.ioprio = ioprio;
            c.prio_gen += 1;
        }
        self.tell(cx, sched, task, IocEvent::Prio);
    }
    /// Nice value and policy.
    pub fn nice(&mut self, cx: &mut Cx, task: TaskId, nice: i8, policy: Policy) {
        let i = self.info(task);
        (i.nice, i.policy) = (nice, policy);
        if let Some(ioc) = cx.iocs.find(task) {
            let c = cx.iocs.get_mut(ioc);
            (c.nice, c.policy) = (nice, policy);
        }
    }
    /// Moved to another cgroup.
    pub fn cgroup<S: Scheduler + ?Sized>(
        &mut self,
        cx: &mut Cx,
        sched: &mut S,
        task: TaskId,
        cgroup: CgroupId,
    ) {
        self.info(task).cgroup = cgroup;
        if let Some(ioc) = cx.iocs.find(task) {
            cx.iocs.get_mut(ioc).cgroup = cgroup;
        }
        self.tell(cx, sched, task, IocEvent::Cgroup);
    }
    /// Shares the context of `with`, from its first bio on.
    pub fn share(&mut self, task: TaskId, with: TaskId) {
        self.info(task).shares = Some(with);
    }
    /// The scheduler was replaced: it knows nobody yet.
    pub fn forget_all(&mut self) {
        self.attached = Side::new();
    }
}

/// A change to a cgroup's entry, told to the scheduler.
pub fn change_cgroup<S: Scheduler + ?Sized>(
    cx: &mut Cx,
    sched: &mut S,
    id: CgroupId,
    event: CgroupEvent,
    change: impl FnOnce(&mut Cgroup),
) {
    change(cx.cgroups.entry(id).or_insert(Cgroup {
        parent: CgroupId::ROOT,
        weight: None,
        leaf_weight: None,
        online: true,
    }));
    sched.cgroup_event(cx, id, event);
}
