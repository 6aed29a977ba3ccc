//! A scheduler in Python with the interface of a built-in scheduler. Each call is passed to Python,
//! and the actions that Python requested are checked and done.

use super::view::{Bio, Command, Cx as View, Request, misuse};
use super::{Class, rule, watch};
use pyo3::prelude::*;
use seekwell_core::{Bio as OfBio, Instant, IocId, Nanos, RqId, State};
use seekwell_sched::tunable::{legacy_int, strict_int};
use seekwell_sched::{Cx, Insert, Layer, MergeKind, Scheduler, StoreError, Tunable};
use std::sync::Arc;

/// Whether a request is in the scheduler or in the device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Inside,
    Out,
}

/// An instance of a scheduler class.
pub struct Bridge {
    class: Arc<Class>,
    object: Py<PyAny>,
    view: Py<View>,
    /// The requests, by index.
    requests: Vec<Option<(Py<Request>, Where)>>,
    /// Number of dispatched requests that have not completed.
    out: u32,
}

impl Bridge {
    /// Creates an instance of a class.
    pub fn new(class: Arc<Class>, cx: &Cx) -> Self {
        let made = Python::attach(|py| -> PyResult<(Py<PyAny>, Py<View>)> {
            let _call = watch::enter(py);
            let view = Py::new(py, View::default())?;
            see(&view, cx);
            let kind = class.of.bind(py);
            let object = kind.call_method1("__new__", (kind,))?;
            let q = &cx.queue;
            let facts = py.import("seekwell.scheduler")?.getattr("Queue")?.call1((
                q.rotational,
                q.depth,
                q.nr_requests,
                q.hctxs,
                q.cpus,
                q.max_sectors.0,
                &q.name,
            ))?;
            object.setattr("queue", facts)?;
            for t in class.tunables {
                let value: i64 = t.default.parse().unwrap_or(0);
                object.setattr(t.name, value)?;
            }
            object.call_method0("__init__")?;
            Ok((object.unbind(), view))
        });
        match made {
            Ok((object, view)) => Bridge {
                class,
                object,
                view,
                requests: Vec::new(),
                out: 0,
            },
            Err(e) => raised(&class, "__init__", e),
        }
    }

    /// Calls a method with the present state of the queue.
    fn ask<R>(
        &self,
        cx: &Cx,
        method: &'static str,
        call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>, &Py<View>) -> PyResult<R>,
    ) -> R {
        see(&self.view, cx);
        let called = Python::attach(|py| {
            let _call = watch::enter(py);
            call(py, self.object.bind(py), &self.view)
        });
        match called {
            Ok(r) => r,
            Err(e) => raised(&self.class, method, e),
        }
    }

    /// Does the actions that the last call requested. Returns the number of dispatched requests.
    fn carry_out(&mut self, cx: &mut Cx, method: &str) -> u32 {
        let commands = std::mem::take(&mut self.view.get().seen().commands);
        let mut emitted = 0;
        for c in commands {
            match c {
                Command::Emit(rq, how) => {
                    self.emit(cx, RqId(rq), how, method);
                    emitted += 1;
                }
                Command::Arm(slot, at) => cx.arm(slot, Instant::START + Nanos(at)),
                Command::ArmJiffy(slot, j) => cx.arm_jiffy(slot, j),
                Command::Disarm(slot) => cx.disarm(slot),
                Command::Kick => cx.kick(),
                Command::Why(name, text) => cx.why(rule(&name), || text),
            }
        }
        emitted
    }

    fn emit(&mut self, cx: &mut Cx, rq: RqId, how: seekwell_sched::Emit, method: &str) {
        let name = &self.class.name;
        let known = self.requests.get_mut(rq.idx()).and_then(Option::as_mut);
        match known {
            Some(known) if known.1 == Where::Inside && cx.rqs[rq].state == State::Sorted => {
                known.1 = Where::Out;
                self.out += 1;
                cx.emit(rq, how);
            }
            _ => misuse(format!(
                "{name}.{method} let a request go that is not inside: each goes once, and one that \
                 was merged away (`joined`: gone) has to be forgotten"
            )),
        }
    }

    fn request(&self, py: Python<'_>, rq: RqId) -> Option<Py<Request>> {
        let known = self.requests.get(rq.idx())?.as_ref()?;
        Some(known.0.clone_ref(py))
    }

    /// Updates the Python object of a request.
    fn refresh(&self, cx: &Cx, rq: RqId) {
        if let Some(Some((object, _))) = self.requests.get(rq.idx()) {
            let now = Request::of(rq, &cx.rqs[rq], cx.iocs.get(cx.rqs[rq].ioc).task.0);
            Python::attach(|py| *object.borrow_mut(py) = now);
        }
    }

    /// Checks the request that a method returned.
    fn found(&self, cx: &Cx, method: &'static str, found: Option<RqId>) -> Option<RqId> {
        let rq = found?;
        let inside = self.requests.get(rq.idx()).and_then(Option::as_ref);
        if inside.is_none_or(|k| k.1 != Where::Inside) || cx.rqs[rq].state != State::Sorted {
            let name = &self.class.name;
            misuse(format!(
                "{name}.{method} names a request that is not inside"
            ));
        }
        Some(rq)
    }
    fn neighbour(&self, cx: &Cx, method: &'static str, rq: RqId) -> Option<RqId> {
        let found = self.ask(cx, method, |py, object, view| {
            let Some(request) = self.request(py, rq) else {
                return Ok(None);
            };
            let found = object.call_method1(method, (view, request))?;
            number(&found)
        });
        self.found(cx, method, found)
    }
}

/// Returns the index of the request that a method returned, or `None`.
fn number(found: &Bound<'_, PyAny>) -> PyResult<Option<RqId>> {
    if found.is_none() {
        return Ok(None);
    }
    let rq: PyRef<'_, Request> = found.extract()?;
    Ok(Some(RqId(rq.rq)))
}

fn see(view: &Py<View>, cx: &Cx) {
    let mut seen = view.get().seen();
    seen.now_ns = cx.now().since_start();
    seen.jiffies = cx.jiffies();
    seen.hz = cx.hz();
    seen.queued = cx.nr_sorted;
    seen.in_driver = cx.in_driver;
    seen.listening = cx.log.listening();
}

fn raised(class: &Class, method: &str, e: PyErr) -> ! {
    watch::fail("SchedulerError", watch::words(&class.name, method, &e), e)
}

const fn how_name(how: Insert) -> &'static str {
    match how {
        Insert::Sorted => "sorted",
        Insert::AtHead => "at_head",
        Insert::Requeue => "requeue",
        Insert::Reinsert => "reinsert",
    }
}

impl Scheduler for Bridge {
    fn insert(&mut self, cx: &mut Cx, rq: RqId, how: Insert) {
        let now = Request::of(rq, &cx.rqs[rq], cx.iocs.get(cx.rqs[rq].ioc).task.0);
        if self.requests.len() <= rq.idx() {
            self.requests.resize_with(rq.idx() + 1, || None);
        }
        let was = self.requests[rq.idx()].take();
        if was.as_ref().is_some_and(|w| w.1 == Where::Out) {
            self.out -= 1;
        }
        let object = Python::attach(|py| -> PyResult<Py<Request>> {
            match was {
                Some((object, _)) => {
                    *object.borrow_mut(py) = now;
                    Ok(object)
                }
                None => Py::new(py, now),
            }
        });
        let object = object.unwrap_or_else(|e| raised(&self.class, "insert", e));
        self.requests[rq.idx()] = Some((object, Where::Inside));
        self.ask(cx, "insert", |py, object, view| {
            object
                .call_method1("insert", (view, self.request(py, rq), how_name(how)))
                .map(drop)
        });
        self.carry_out(cx, "insert");
    }

    fn dispatch(&mut self, cx: &mut Cx, hctx: u16, force: bool) -> u32 {
        if cx.nr_sorted == 0 && !self.class.has("has_work") {
            return 0;
        }
        self.ask(cx, "dispatch", |_, object, view| {
            object
                .call_method1("dispatch", (view, hctx, force))
                .map(drop)
        });
        let emitted = self.carry_out(cx, "dispatch");
        let (name, inside) = (&self.class.name, cx.nr_sorted);
        if emitted == 0 && inside > 0 {
            if force {
                misuse(format!(
                    "{name}.dispatch gave nothing although it was forced: {inside} requests are \
                     inside, and a queue that is drained holds nothing back"
                ));
            }
            let waits = self.out > 0 || cx.timers().next().is_some() || cx.kicked();
            if !waits {
                let lost = self
                    .requests
                    .iter()
                    .flatten()
                    .find(|r| r.1 == Where::Inside);
                let lost = Python::attach(|py| {
                    lost.map_or(String::new(), |r| {
                        r.0.bind(py).repr().map_or(String::new(), |t| t.to_string())
                    })
                });
                misuse(format!(
                    "{name}.dispatch gave nothing: {inside} requests are inside ({lost}), none is \
                     with the device, and no timer is armed, so nobody would ask \
                     again. Was one lost?"
                ));
            }
        }
        emitted
    }

    fn has_work(&self, cx: &Cx, hctx: u16) -> bool {
        if !self.class.has("has_work") {
            return cx.nr_sorted > 0;
        }
        self.ask(cx, "has_work", |_, object, view| {
            object.call_method1("has_work", (view, hctx))?.is_truthy()
        })
    }

    fn find_front(&mut self, cx: &mut Cx, bio: &OfBio, _: IocId) -> Option<RqId> {
        if !self.class.has("find_front") {
            return None;
        }
        let found = self.ask(cx, "find_front", |_, object, view| {
            number(&object.call_method1("find_front", (view, Bio::of(bio)))?)
        });
        self.found(cx, "find_front", found)
    }

    fn allow_merge(&mut self, cx: &mut Cx, rq: RqId, bio: &OfBio, _: IocId) -> bool {
        if !self.class.has("allow_merge") {
            return true;
        }
        self.ask(cx, "allow_merge", |py, object, view| {
            let Some(request) = self.request(py, rq) else {
                return Ok(true);
            };
            object
                .call_method1("allow_merge", (view, request, Bio::of(bio)))?
                .is_truthy()
        })
    }

    fn merged(&mut self, cx: &mut Cx, rq: RqId, kind: MergeKind) {
        self.refresh(cx, rq);
        if !self.class.has("merged") {
            return;
        }
        let kind = match kind {
            MergeKind::Back => "back",
            MergeKind::Front => "front",
        };
        self.ask(cx, "merged", |py, object, view| {
            object
                .call_method1("merged", (view, self.request(py, rq), kind))
                .map(drop)
        });
        self.carry_out(cx, "merged");
    }

    fn joined(&mut self, cx: &mut Cx, kept: RqId, gone: RqId) {
        self.refresh(cx, kept);
        self.ask(cx, "joined", |py, object, view| {
            let (kept, gone) = (self.request(py, kept), self.request(py, gone));
            object.call_method1("joined", (view, kept, gone)).map(drop)
        });
        if let Some(of) = self.requests.get_mut(gone.idx()) {
            *of = None;
        }
        self.carry_out(cx, "joined");
    }

    fn former(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        match self.class.has("former") {
            true => self.neighbour(cx, "former", rq),
            false => None,
        }
    }
    fn latter(&mut self, cx: &Cx, rq: RqId) -> Option<RqId> {
        match self.class.has("latter") {
            true => self.neighbour(cx, "latter", rq),
            false => None,
        }
    }

    fn finish(&mut self, _: &mut Cx, rq: RqId) {
        if let Some((_, Where::Out)) = self.requests.get_mut(rq.idx()).and_then(Option::take) {
            self.out -= 1;
        }
    }

    fn completed(&mut self, cx: &mut Cx, rq: RqId) {
        if !self.class.has("completed") {
            return;
        }
        self.refresh(cx, rq);
        self.ask(cx, "completed", |py, object, view| {
            let Some(request) = self.request(py, rq) else {
                return Ok(());
            };
            object.call_method1("completed", (view, request)).map(drop)
        });
        self.carry_out(cx, "completed");
    }

    fn timer(&mut self, cx: &mut Cx, slot: u8) {
        self.ask(cx, "timer", |_, object, view| {
            object.call_method1("timer", (view, slot)).map(drop)
        });
        self.carry_out(cx, "timer");
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.class.tunables
    }
    fn show(&self, cx: &Cx, name: &str) -> Option<String> {
        let known = self.class.tunables.iter().any(|t| t.name == name);
        known.then(|| {
            self.ask(cx, "tunable", |_, object, _| {
                Ok(object.getattr(name)?.str()?.to_string())
            })
        })
    }
    fn store(&mut self, cx: &mut Cx, name: &str, text: &str) -> Result<(), StoreError> {
        let tunable = self.class.tunables.iter().find(|t| t.name == name);
        let tunable = tunable.ok_or_else(|| StoreError::unknown(name))?;
        let value = match self.class.layer {
            Layer::Legacy => legacy_int(text),
            Layer::Mq => strict_int(name, text)?,
        };
        let value = value.clamp(tunable.min, tunable.max);
        self.ask(cx, "stored", |_, object, view| {
            object.setattr(name, value)?;
            object.call_method1("stored", (view, name)).map(drop)
        });
        self.carry_out(cx, "stored");
        Ok(())
    }

    fn check(&self, cx: &Cx) {
        let inside = self
            .requests
            .iter()
            .flatten()
            .filter(|r| r.1 == Where::Inside);
        assert_eq!(inside.count(), cx.nr_sorted as usize, "requests inside");
        if self.class.has("check") {
            self.ask(cx, "check", |_, object, view| {
                object.call_method1("check", (view,)).map(drop)
            });
        }
    }
    fn state(&self, cx: &Cx, out: &mut String) {
        if self.class.has("state") {
            *out += &self.ask(cx, "state", |_, object, _| {
                Ok(object.call_method0("state")?.str()?.to_string())
            });
        }
    }
}
