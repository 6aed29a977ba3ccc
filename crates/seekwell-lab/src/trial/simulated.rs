//! A trial on a simulated machine, whose scheduler is switched in the middle of the run.
//!
//! The machine runs in its own thread. It stops at the end of each interval and waits for the next
//! order, so the results depend on the seed only. The programs restart whenever they end.
//!
//! Latencies are those of bios: they include the wait for a free request, which the counters of a
//! real kernel leave out.

use super::Bed;
use seekwell::result::{Direction, Record};
use seekwell::{Cancel, RunSpec};
use seekwell_core::Nanos;
use seekwell_device::with_files;
use seekwell_host::observe::{Interval, Side};
use seekwell_host::watch::Buckets;
use seekwell_sim::Setup;
use seekwell_sim::spec::{checked, plan, setup, world};
use seekwell_sim::world::{self, Beside, Drive, Neighbour, Paused, SimMachine, script_beside};
use seekwell_workload::{Context, Machine, Mark, Outcome};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

enum Order {
    Run(Nanos),
    Switch(Box<Setup>),
    Describe,
}

enum Answer {
    Ran(Box<world::Interval>),
    Switched(Result<(), String>),
    Described(Box<Record>),
}

struct Link {
    orders: Sender<Order>,
    answers: Receiver<Answer>,
    /// What happened since the last call of [`Bed::since_last`].
    passed: Interval,
    /// Why the machine ended.
    over: Option<String>,
    thread: Option<JoinHandle<Result<(), String>>>,
}

/// A simulated machine at work.
pub struct SimBed(Mutex<Link>);

impl SimBed {
    /// Starts the machine, with the workload and the background programs of a specification as its
    /// work. `span_s` is the time for which it will be observed. Returns when the programs have
    /// prepared their files.
    ///
    /// # Errors
    /// The specification is invalid, or the machine cannot run it.
    pub fn new(spec: &RunSpec, span_s: f64) -> Result<SimBed, String> {
        let spec = checked(spec).map_err(|e| e.to_string())?;
        let (orders, received) = channel();
        let (sender, answers) = channel();
        let span = Nanos((span_s * 1e9) as u64);
        let thread = std::thread::Builder::new()
            .name("trial".to_owned())
            .spawn(move || {
                let files = spec.device.files.clone();
                with_files(&files, || live(&spec, span, &received, &sender))
            });
        let bed = SimBed(Mutex::new(Link {
            orders,
            answers,
            passed: Interval::default(),
            over: None,
            thread: Some(thread.map_err(|e| e.to_string())?),
        }));
        // The first order is answered when the programs are ready.
        let ready = bed.link().ask(Order::Describe);
        ready.map(|_| bed)
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    fn ask(&mut self, order: Order) -> Result<Answer, String> {
        let sent = self.orders.send(order).is_ok();
        if let Some(answer) = sent.then(|| self.answers.recv().ok()).flatten() {
            return Ok(answer);
        }
        let ended = self.thread.take().map(JoinHandle::join);
        let why = match ended {
            Some(Ok(Err(why))) => why,
            Some(Err(_)) => "internal error in the simulated machine".to_owned(),
            _ => "the simulated machine has ended".to_owned(),
        };
        Err(self.over.get_or_insert(why).clone())
    }
}

impl Drop for SimBed {
    fn drop(&mut self) {
        let link = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Without a sender of orders, the machine ends at the end of its interval.
        link.orders = channel().0;
        if let Some(thread) = link.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs the machine until there are no more orders.
fn live(
    spec: &RunSpec,
    span: Nanos,
    orders: &Receiver<Order>,
    answers: &Sender<Answer>,
) -> Result<(), String> {
    let mut setup = world(spec).map_err(|e| e.to_string())?;
    let work = plan(&spec.workload).map_err(|e| e.to_string())?;
    let plan = work.ok_or("a trace cannot be the work of a simulated trial")?;
    setup.neighbours.insert(0, Neighbour { plan, again: true });
    setup.neighbours.iter_mut().for_each(|n| n.again = true);
    let mut drive = Drive::open(&setup.setup).map_err(|e| e.to_string())?;
    let mut begun = false;
    let mut each = |interval: world::Interval, paused: &Paused<'_>| {
        if std::mem::replace(&mut begun, true) {
            answers.send(Answer::Ran(Box::new(interval))).ok()?;
        }
        loop {
            let answer = match orders.recv().ok()? {
                Order::Run(span) => return Some(span),
                Order::Switch(to) => {
                    Answer::Switched(paused.switch(&to).map_err(|e| e.to_string()))
                }
                Order::Describe => {
                    let mut record = spec_record(spec);
                    paused.describe(&mut record);
                    Answer::Described(Box::new(record))
                }
            };
            answers.send(answer).ok()?;
        }
    };
    let beside = Beside {
        each: Some(&mut each),
        ..Beside::default()
    };
    let ran = script_beside("trial", &setup, &mut drive, beside, Some(span), idle);
    let ran = ran.map_err(|e| e.to_string())?;
    ran.stopped.map_or(Ok(()), Err)
}

fn spec_record(spec: &RunSpec) -> Record {
    setup(spec).record(super::LABEL)
}

/// The measured program only starts the clock, because the background programs are the work. It
/// sleeps for a short time, so that the machine ends soon if a program fails.
async fn idle(mut m: SimMachine) -> Outcome {
    m.mark(Mark::ClockStart);
    loop {
        m.sleep(Nanos::from_secs(1)).await.doing(|| "sleep")?;
    }
}

fn side(done: &Direction, waiting: u64) -> Side {
    let mut latency = Buckets::default();
    let all = done.latency.buckets();
    all.into_iter().for_each(|(ns, n)| latency.add(ns, n));
    Side {
        ios: done.ios,
        bytes: done.bytes,
        wait_ns: (done.latency.mean_ns() * done.latency.count() as f64) as u64,
        in_flight: waiting,
        latency,
    }
}

impl Bed for SimBed {
    fn set(&self, spec: &RunSpec) -> Result<(), String> {
        let to = Box::new(setup(&checked(spec).map_err(|e| e.to_string())?));
        match self.link().ask(Order::Switch(to))? {
            Answer::Switched(done) => done,
            _ => Err("internal error: another answer".to_owned()),
        }
    }
    fn wait(&self, seconds: f64, cancel: &Cancel) {
        let mut link = self.link();
        if cancel.is_set() {
            return;
        }
        let span = Nanos((seconds * 1e9) as u64);
        if let Ok(Answer::Ran(i)) = link.ask(Order::Run(span)) {
            link.passed.add(&Interval {
                span_ns: i.span.0,
                read: side(&i.read.done, i.read.waiting),
                write: side(&i.write.done, i.write.waiting),
                busy_ns: i.busy.0,
                waiting: i.read.waiting + i.write.waiting,
                queue_ns: u64::try_from(i.outstanding_ns).unwrap_or(u64::MAX),
                ..Interval::default()
            });
        }
    }
    fn since_last(&self, _: bool) -> Interval {
        std::mem::take(&mut self.link().passed)
    }
    fn over(&self) -> Option<String> {
        self.link().over.clone()
    }
    fn describe(&self, _: &RunSpec, record: &mut Record) {
        let label = std::mem::take(&mut record.scheduler.spec);
        if let Ok(Answer::Described(of)) = self.link().ask(Order::Describe) {
            record.device = of.device;
            record.scheduler = of.scheduler;
            record.queue = of.queue;
        }
        record.scheduler.spec = label;
    }
}
