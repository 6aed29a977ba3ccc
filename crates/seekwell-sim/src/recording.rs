//! Records the events of a part of a run (the window) in the format of `docs/events.md`.
//!
//! The times of the window refer to the workload's own clock. If a workload prepares files, its
//! clock starts when the measurement begins. The recording contains a snapshot of the queue at the
//! start of the window. From this snapshot and the events, a reader can compute the contents of the
//! queue at any time. A second snapshot at the end of the window lets the reader check the result.

use crate::told::Listen;
use seekwell_core::event::Member;
use seekwell_core::event::wire::{Cell, End, Line};
use seekwell_core::{Event, Instant, Nanos, Snapshot, TaskId};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::rc::Rc;

/// Largest number of events written per run: about 40 MB of text.
pub const MOST_EVENTS: u64 = 250_000;

/// A part of a run, in times of the workload's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Start of the window.
    pub from: Nanos,
    /// Length of the window. `None`: until the end of the run.
    pub length: Option<Nanos>,
}

impl Window {
    fn begin(&self, clock: Instant) -> Instant {
        clock + self.from
    }
    fn end(&self, clock: Instant) -> Option<Instant> {
        Some(self.begin(clock) + self.length?)
    }
}

/// Storage for the lines of a recording until the run is over.
pub trait Store: Write {
    /// Discards everything that was written.
    ///
    /// # Errors
    /// Returns errors of the underlying file.
    fn clear(&mut self) -> io::Result<()>;
}

impl Store for Vec<u8> {
    fn clear(&mut self) -> io::Result<()> {
        Vec::clear(self);
        Ok(())
    }
}

impl Store for BufWriter<File> {
    fn clear(&mut self) -> io::Result<()> {
        self.flush()?;
        self.get_mut().set_len(0)?;
        self.rewind()
    }
}

struct Inner<W> {
    to: W,
    cell: Cell,
    window: Window,
    most: u64,
    clock: Instant,
    /// Whether the window has begun, and whether it is over.
    begun: bool,
    ended: bool,
    /// Whether the next snapshot is the one at the end of the window.
    closing: bool,
    end: End,
    tasks: BTreeSet<u32>,
    failed: Option<io::Error>,
}

/// Listens to a run and writes a window of its events. Clones share the same recording.
pub struct Recording<W>(Rc<RefCell<Inner<W>>>);

impl<W> Clone for Recording<W> {
    fn clone(&self) -> Self {
        Recording(Rc::clone(&self.0))
    }
}

impl<W: Store> Recording<W> {
    /// Creates a recording for the run that `cell` describes.
    pub fn new(to: W, cell: Cell, window: Window) -> Self {
        Recording(Rc::new(RefCell::new(Inner {
            to,
            cell: Cell {
                from: window.from.0,
                length: window.length.map(|l| l.0),
                ..cell
            },
            window,
            most: MOST_EVENTS,
            clock: Instant::START,
            begun: false,
            ended: false,
            closing: false,
            end: End::default(),
            tasks: BTreeSet::new(),
            failed: None,
        })))
    }
    /// Sets the largest number of events.
    #[must_use]
    pub fn at_most(self, events: u64) -> Self {
        self.0.borrow_mut().most = events;
        self
    }
    /// Ends the recording; must be called after the run. Returns the storage with everything
    /// written, and the last line. `early` is the reason if the run ended early.
    ///
    /// # Errors
    /// Returns any error of a write, including earlier ones.
    ///
    /// # Panics
    /// Panics if the run still holds a clone of this recording.
    pub fn finish(self, early: Option<&str>) -> io::Result<(W, End)> {
        let inner = Rc::try_unwrap(self.0);
        let mut i = inner
            .unwrap_or_else(|_| panic!("the run has dropped its listener"))
            .into_inner();
        if !i.begun {
            // The window starts only after the end of the run.
            let cell = Line::Cell(Box::new(std::mem::take(&mut i.cell)));
            i.line(&cell);
        }
        i.end.early = early.map(str::to_owned);
        i.end.clock = i.clock.since_start();
        let end = std::mem::take(&mut i.end);
        i.line(&Line::End(Box::new(end.clone())));
        if let Some(e) = i.failed {
            return Err(e);
        }
        i.to.flush()?;
        Ok((i.to, end))
    }
}

impl<W: Store> Inner<W> {
    fn line(&mut self, l: &Line) {
        if self.failed.is_some() {
            return;
        }
        let mut text = l.text();
        text.push('\n');
        self.failed = self.to.write_all(text.as_bytes()).err();
    }
}

impl<W: Store> Listen for Recording<W> {
    fn event(&mut self, e: &Event) {
        let i = &mut *self.0.borrow_mut();
        if !i.begun || i.ended {
            return;
        }
        if i.end.events >= i.most {
            i.end.left_out += 1;
            return;
        }
        i.end.events += 1;
        i.tasks.extend(e.task.map(|t| t.0));
        i.tasks.extend(e.other.map(|t| t.0));
        i.line(&Line::event(e));
    }
    fn clock(&mut self, at: Instant) {
        let i = &mut *self.0.borrow_mut();
        i.clock = at;
        // A window over the whole run includes the preparation.
        if i.window == Window::default() {
            return;
        }
        (i.begun, i.ended, i.closing) = (false, false, false);
        i.end = End::default();
        i.tasks.clear();
        i.failed = i.failed.take().or(i.to.clear().err());
    }
    fn wants_snapshot(&mut self, at: Instant) -> Option<Instant> {
        let i = &mut *self.0.borrow_mut();
        if i.ended {
            return None;
        }
        if !i.begun {
            let begin = i.window.begin(i.clock);
            i.closing = false;
            return (at >= begin).then_some(begin);
        }
        let end = i.window.end(i.clock)?;
        i.closing = true;
        (at >= end).then_some(end)
    }
    fn snapshot(&mut self, members: Vec<Member>, inside: Vec<Snapshot>) {
        let i = &mut *self.0.borrow_mut();
        if i.closing {
            i.ended = true;
            if i.end.left_out > 0 {
                return;
            }
        } else {
            i.begun = true;
            i.cell.members = members;
            let cell = Line::Cell(Box::new(i.cell.clone()));
            i.line(&cell);
        }
        for s in inside {
            i.tasks.extend(s.requests.iter().map(|r| r.task));
            i.line(&Line::Snapshot(Box::new(s)));
        }
    }
    fn over(&mut self, at: Instant, names: &dyn Fn(TaskId) -> Option<String>) {
        let i = &mut *self.0.borrow_mut();
        i.end.t = at.since_start();
        let named = |t: &u32| Some((*t, names(TaskId(*t))?));
        i.end.tasks = i.tasks.iter().filter_map(named).collect();
    }
}
