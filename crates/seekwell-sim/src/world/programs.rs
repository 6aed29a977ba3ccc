//! Several programs on one machine: a measured program, and background programs.
//!
//! The background programs prepare their files one after the other. Each program is held when its
//! own clock starts. Then the measured program prepares its files on an otherwise idle machine.
//! When the clock of the measured program starts, all programs continue together. The clock of a
//! held program stands still, so the duration of the program does not change. The work of a
//! background program counts while the clock of the measured program runs. All programs end with
//! the measured program.
//!
//! The first task of the machine always belongs to the measured program. Background programs
//! therefore change neither the number of this task nor the random numbers that the measured
//! program draws.

use super::exec::{Script, Shared, World};
use super::machine::SimMachine;
use super::sync::Task;
use seekwell_core::result::{BackgroundPart, Metric, Record};
use seekwell_core::{Advice, Errno, Instant, NSEC_PER_SEC, Nanos, OpenFlags};
use seekwell_stack::Call;
use seekwell_workload::{Machine, Mark, Measures, Note, Plan};

/// A background program.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Its workload.
    pub plan: Plan,
    /// Whether the program restarts whenever it ends.
    pub again: bool,
}

/// Number of a program. The measured program has number 0.
pub(super) type Program = u16;

/// An active background program.
pub(super) struct Beside {
    plan: Plan,
    again: bool,
    name: String,
    directory: String,
    pub(super) measures: Measures,
    /// Total time for which the program was held. Its clock is behind the clock of the run by this
    /// time.
    shift: Nanos,
    /// Start of the present hold.
    held: Option<Instant>,
    /// The clock of the program has started, or the program is over.
    ready: bool,
    rounds: u32,
    ended: Option<Instant>,
    /// Calls that the program made while it was held.
    waiting: Vec<(Task, Call)>,
}

impl Beside {
    /// Returns the background programs of a run, with unique names such as "beside/streams" and
    /// "beside/streams-2".
    pub(super) fn all(neighbours: &[Neighbour]) -> Vec<Beside> {
        let one = |(i, n): (usize, &Neighbour)| {
            let same = |o: &&Neighbour| o.plan.name() == n.plan.name();
            let before = neighbours[..i].iter().filter(same).count();
            let name = match before {
                0 => n.plan.name().to_owned(),
                k => format!("{}-{}", n.plan.name(), k + 1),
            };
            Beside {
                plan: n.plan.clone(),
                again: n.again,
                directory: format!("seekwell-beside-{name}"),
                name: format!("beside/{name}"),
                measures: Measures::default(),
                shift: Nanos::ZERO,
                held: None,
                ready: false,
                rounds: 0,
                ended: None,
                waiting: Vec::new(),
            }
        };
        neighbours.iter().enumerate().map(one).collect()
    }
    /// Returns the time on the program's own clock.
    pub(super) fn time(&self, now: Instant) -> Instant {
        Instant(self.held.unwrap_or(now).0 - self.shift.0)
    }
    /// Returns the path of the first task of the program's next round.
    fn path(&self) -> String {
        match self.rounds {
            0 => self.name.clone(),
            n => format!("{}/round{}", self.name, n + 1),
        }
    }
}

impl World {
    pub(super) fn background_of(&mut self, p: Program) -> Option<&mut Beside> {
        self.beside.get_mut(usize::from(p).checked_sub(1)?)
    }
    pub(super) fn measures_of(&mut self, p: Program) -> &mut Measures {
        match usize::from(p).checked_sub(1) {
            None => &mut self.measures,
            Some(i) => &mut self.beside[i].measures,
        }
    }
    /// Returns the working directory of a background program.
    pub(super) fn directory_of(&self, p: Program) -> Option<String> {
        let b = &self.beside[usize::from(p).checked_sub(1)?];
        Some(b.directory.clone())
    }
    /// Returns the time on a program's own clock.
    #[inline]
    pub(super) fn time_of(&self, p: Program) -> Instant {
        match usize::from(p).checked_sub(1) {
            None => self.now,
            Some(i) => self.beside[i].time(self.now),
        }
    }
    /// Returns whether the program waits for the others, or the run is over.
    pub(super) fn is_held(&self, p: Program) -> bool {
        if self.over {
            return true;
        }
        let b = usize::from(p).checked_sub(1).map(|i| &self.beside[i]);
        b.is_some_and(|b| b.held.is_some())
    }
    /// Stores a call of a held program. If the run is over, makes the call fail instead.
    #[cold]
    pub(super) fn hold(&mut self, p: Program, t: Task, call: Call) {
        if self.over {
            return self.refuse(t);
        }
        if let Some(b) = self.background_of(p) {
            b.waiting.push((t, call));
        }
    }
    /// Records a note from a task of a background program.
    #[cold]
    pub(super) fn note_beside(&mut self, p: Program, part: usize, note: Note) {
        let now = self.now;
        let Some(b) = self.background_of(p) else {
            return;
        };
        let shift = b.shift;
        match note {
            // The program's clock is not measured. Its start shows that the program has prepared
            // its files.
            Note::Mark(_, Mark::ClockStart) if !b.ready => {
                b.held = Some(now);
                self.holding = true;
                self.is_ready(p);
            }
            Note::Mark(_, Mark::ClockStart | Mark::ClockStop) | Note::Counts(_) => {}
            Note::Metric { .. } if b.again => {}
            Note::Op {
                kind,
                start,
                end,
                bytes,
            } => {
                let note = Note::Op {
                    kind,
                    start: start + shift,
                    end: end + shift,
                    bytes,
                };
                b.measures.note(part, &note);
            }
            Note::Mark(at, mark) => b.measures.note(part, &Note::Mark(at + shift, mark)),
            note @ Note::Metric { .. } => b.measures.note(part, &note),
        }
    }
    /// Called when a background program has prepared its files or is over. Starts the next program;
    /// the measured program is the last.
    fn is_ready(&mut self, p: Program) {
        let Some(b) = self.background_of(p) else {
            return;
        };
        if std::mem::replace(&mut b.ready, true) {
            return;
        }
        let next = if usize::from(p) < self.beside.len() {
            p + 1
        } else {
            0
        };
        self.begin.push_back(next);
        self.news = true;
    }
    /// Lets all held programs continue.
    pub(super) fn release(&mut self) {
        if !std::mem::take(&mut self.holding) {
            return;
        }
        let now = self.now;
        for i in 0..self.beside.len() {
            let b = &mut self.beside[i];
            if let Some(since) = b.held.take() {
                b.shift += now.since(since);
            }
            for (t, call) in std::mem::take(&mut b.waiting) {
                let tid = self.tid(t);
                self.kernel.call(now, tid, call);
            }
        }
    }
    /// Handles the start or the stop of the measured program's clock.
    pub(super) fn clock_beside(&mut self, at: Instant, starts: bool) {
        if self.beside.is_empty() {
            return;
        }
        for b in &mut self.beside {
            if starts {
                b.measures.start_at(at);
            } else {
                b.measures.stop_at(at);
            }
        }
        if starts {
            self.release();
        }
    }
    /// Handles the end of the first task of a background program.
    pub(super) fn ended_beside(&mut self, p: Program, well: bool) {
        let (now, going) = (self.now, self.stop.is_none());
        let Some(b) = self.background_of(p) else {
            return;
        };
        if well && going && b.again {
            self.begin.push_back(p);
            self.news = true;
        } else if going {
            b.ended = Some(now);
        }
        self.is_ready(p);
    }
}

/// Starts a round of a background program. Does nothing for the measured program.
pub(super) fn begin(world: &Shared, p: Program) {
    let (task, script) = {
        let w = &mut *world.borrow_mut();
        let Some(b) = w.background_of(p) else { return };
        let (path, directory, again) = (b.path(), b.directory.clone(), b.again);
        let plan = b.plan.clone();
        b.rounds += 1;
        let task = w.start(path, seekwell_stack::TaskConfig::default(), p);
        w.begun(task);
        // A restarted program creates its directory again.
        (task, move |m| plan.run_in(m, directory, !again))
    };
    let script: Script = Box::pin(script(SimMachine::new(world, task)));
    world.borrow_mut().push(task, script);
}

/// Adds the results of the background programs to the record of the measured program. That record
/// defines the measured time. `whole`: the measured program finished.
pub(super) fn add_results(all: Vec<Beside>, r: &mut Record, whole: bool) {
    let begun = r.clock_start_ns.unwrap_or_default();
    let end = begun + r.span_ns();
    let seconds = |ns: u64| ns as f64 / NSEC_PER_SEC as f64;
    if whole && !all.is_empty() && r.clock_start_ns.is_none() {
        let text = "the workload never started its clock, so the background programs did not run";
        r.warnings.push(text.to_owned());
    }
    for b in all {
        let mut own = Record::default();
        b.measures.fill(&mut own);
        let ended_ns = b.ended.map(Instant::since_start);
        if let Some(at) = ended_ns.filter(|at| whole && *at < end) {
            let when = match at.checked_sub(begun) {
                Some(ns) => format!("after {:.3} of {:.3} s", seconds(ns), seconds(end - begun)),
                None => "before the clock started".to_owned(),
            };
            r.warnings.push(format!(
                "{} ended {when}; the rest was measured without it (loop:{} restarts it)",
                b.name,
                b.plan.name(),
            ));
        }
        own.tasks
            .iter_mut()
            .filter(|t| t.ended_ns < begun)
            .for_each(|t| {
                // This task only prepared files.
                (t.reads, t.read_bytes, t.writes, t.written_bytes) = (0, 0, 0, 0);
            });
        r.more_metrics
            .extend(rates(&b.name, &own, seconds(end - begun)));
        r.marks.append(&mut own.marks);
        r.beside.push(BackgroundPart {
            name: b.name,
            workload: b.plan.name().to_owned(),
            params: b.plan.params(),
            rounds: b.rounds,
            ended_ns,
            metrics: own.metric.into_iter().chain(own.more_metrics).collect(),
            operations: own.operations,
            tasks: own.tasks,
        });
    }
}

/// Returns the bytes and the operations per second of a program while the clock ran.
fn rates(name: &str, own: &Record, span_s: f64) -> Vec<Metric> {
    if span_s <= 0.0 {
        return Vec::new();
    }
    let metric = |what: &str, unit: &str, n: f64| Metric {
        name: format!("{name} {what}"),
        unit: unit.to_owned(),
        value: n / span_s,
        higher_is_better: true,
        ..Metric::default()
    };
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let read: u64 = own.tasks.iter().map(|t| t.read_bytes).sum();
    let written: u64 = own.tasks.iter().map(|t| t.written_bytes).sum();
    let mut all = Vec::new();
    for (what, bytes) in [("reads", read), ("writes", written)] {
        if bytes > 0 {
            all.push(metric(what, "MB/s", mib(bytes)));
        }
    }
    for o in own.operations.iter().filter(|o| o.latency.count() > 0) {
        all.push(metric(&o.kind, "1/s", o.latency.count() as f64));
    }
    all
}

impl SimMachine {
    /// Drops the cached pages of all files below a directory. A real run also drops the pages of
    /// its own files.
    pub(super) async fn drop_own(&mut self, directory: String) -> Result<(), Errno> {
        let mut directories = vec![directory];
        while let Some(d) = directories.pop() {
            let entries = match self.readdir(&d).await {
                // A program that uses the raw device has no directory.
                Err(Errno::ENOENT) => return Ok(()),
                entries => entries?,
            };
            for e in entries {
                let path = format!("{d}/{}", e.name);
                if e.dir {
                    directories.push(path);
                    continue;
                }
                let fd = match self.open(&path, OpenFlags::RDONLY).await {
                    // Another task of the program has removed the file since it was listed.
                    Err(Errno::ENOENT) => continue,
                    fd => fd?,
                };
                self.fadvise(fd, 0, 0, Advice::DontNeed).await?;
                self.close(fd).await?;
            }
        }
        Ok(())
    }
}
