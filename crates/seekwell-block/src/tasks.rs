//! The tasks of a queue. The io context of a task is created at its first bio and announced to the
//! scheduler. Settings of the task that were made earlier are stored until then.

use seekwell_core::{CgroupId, Control, IoPrio, IocId, Policy, Side, TaskId};
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

/// The tasks of one queue.
#[derive(Debug, Default)]
pub struct Tasks {
    info: BTreeMap<TaskId, TaskInfo>,
    attached: Side<bool>,
}

impl Tasks {
    fn info(&mut self, task: TaskId) -> &mut TaskInfo {
        self.info.entry(task).or_default()
    }

    /// Returns the I/O priority that ioprio_set gave to a task.
    pub fn ioprio(&self, task: TaskId) -> IoPrio {
        self.info.get(&task).map_or(IoPrio::NONE, |i| i.ioprio)
    }

    /// Returns the io context of a task. If needed, creates the context and announces it to the
    /// scheduler.
    #[inline]
    pub fn ioc_of<S: Scheduler + ?Sized>(
        &mut self,
        cx: &mut Cx,
        sched: &mut S,
        task: TaskId,
    ) -> IocId {
        let ioc = match cx.iocs.find(task) {
            Some(ioc) => ioc,
            None => self.make(cx, task),
        };
        self.attach(cx, sched, ioc);
        ioc
    }
    /// Announces a context to the scheduler. After a switch, the new scheduler gets it again.
    #[inline]
    pub fn attach<S: Scheduler + ?Sized>(&mut self, cx: &mut Cx, sched: &mut S, ioc: IocId) {
        if !std::mem::replace(self.attached.at(ioc.idx()), true) {
            sched.ioc_event(cx, ioc, IocEvent::Attach);
        }
    }
    #[cold]
    fn make(&mut self, cx: &mut Cx, task: TaskId) -> IocId {
        let info = self.info.get(&task).copied().unwrap_or_default();
        // Only one step is followed, because tasks may share their contexts in a circle.
        if let Some(with) = info.shares.filter(|w| *w != task) {
            let ioc = self.silent_ioc(cx, with);
            cx.iocs.share(task, ioc);
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
    /// Returns a context for requests that never reach the scheduler.
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
    /// Frees the index of a context that is dead and has no requests. Returns true if it was freed.
    pub fn release_if_unused<S: Scheduler + ?Sized>(
        &mut self,
        cx: &mut Cx,
        sched: &mut S,
        ioc: IocId,
    ) -> bool {
        let c = cx.iocs.get(ioc);
        if c.alive || c.requests > 0 {
            return false;
        }
        if std::mem::take(self.attached.at(ioc.idx())) {
            sched.ioc_event(cx, ioc, IocEvent::Release);
        }
        cx.iocs.release(ioc);
        true
    }
    /// Handles the exit of a task. Returns its context if the index of the context was freed.
    pub fn exit<S: Scheduler + ?Sized>(
        &mut self,
        cx: &mut Cx,
        sched: &mut S,
        task: TaskId,
    ) -> Option<IocId> {
        self.info.remove(&task);
        let ioc = cx.iocs.find(task)?;
        if !cx.iocs.leave(task, ioc) {
            return None;
        }
        if *self.attached.at(ioc.idx()) {
            sched.ioc_event(cx, ioc, IocEvent::Exit);
        }
        self.release_if_unused(cx, sched, ioc).then_some(ioc)
    }

    /// Handles the control messages about tasks and cgroups, except plugs and exits.
    pub fn control<S: Scheduler + ?Sized>(&mut self, cx: &mut Cx, sched: &mut S, what: Control) {
        match what {
            Control::Prio(t, p) => self.prio(cx, sched, t, p),
            Control::Nice(t, nice, policy) => self.nice(cx, t, nice, policy),
            Control::Cgroup(t, cg) => self.cgroup(cx, sched, t, cg),
            Control::Share(t, with) => self.info(t).shares = Some(with),
            Control::Weight(cg, w) => {
                change_cgroup(cx, sched, cg, CgroupEvent::Weight, |c| c.weight = Some(w))
            }
            Control::LeafWeight(cg, w) => change_cgroup(cx, sched, cg, CgroupEvent::Weight, |c| {
                c.leaf_weight = Some(w)
            }),
            Control::CgroupNew(cg, parent) => {
                change_cgroup(cx, sched, cg, CgroupEvent::Online, |c| {
                    (c.parent, c.online) = (parent, true)
                })
            }
            Control::CgroupGone(cg) => {
                change_cgroup(cx, sched, cg, CgroupEvent::Offline, |c| c.online = false)
            }
            Control::Plug(_)
            | Control::Unplug(_)
            | Control::Sleep(_)
            | Control::DirtySleep(_)
            | Control::IoMax(..)
            | Control::IoWeight(..)
            | Control::IoCostQos(..)
            | Control::IoCostModel(..)
            | Control::IoLatency(..)
            | Control::Exit(_) => {}
        }
    }
    fn prio<S: Scheduler + ?Sized>(
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
    fn nice(&mut self, cx: &mut Cx, task: TaskId, nice: i8, policy: Policy) {
        let i = self.info(task);
        (i.nice, i.policy) = (nice, policy);
        if let Some(ioc) = cx.iocs.find(task) {
            let c = cx.iocs.get_mut(ioc);
            (c.nice, c.policy) = (nice, policy);
        }
    }
    fn cgroup<S: Scheduler + ?Sized>(
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
    /// Forgets all announcements, because the new scheduler has no contexts.
    pub fn forget_all(&mut self) {
        self.attached = Side::new();
    }
}

fn change_cgroup<S: Scheduler + ?Sized>(
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
