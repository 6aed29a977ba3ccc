//! Background programs for a measured workload. They finish their preparations before the workload
//! starts, and end when the workload ends.

use super::runner::{Doing, once};
use seekwell::BackgroundSpec;
use seekwell::result::{BackgroundPart, Record};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Time limit for the preparations of the background programs.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(20);

type Part = Result<BackgroundPart, String>;

/// All background programs of a run.
pub struct Neighbours<'scope> {
    handles: Vec<ScopedJoinHandle<'scope, Part>>,
    began: Vec<Arc<AtomicBool>>,
    stop: Arc<AtomicBool>,
}

impl<'scope> Neighbours<'scope> {
    /// Starts the background programs.
    pub fn begin<'env>(
        scope: &'scope Scope<'scope, 'env>,
        all: &'env [BackgroundSpec],
        doing: &'env Doing<'env>,
    ) -> Result<Self, String> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut neighbours = Neighbours {
            handles: Vec::new(),
            began: Vec::new(),
            stop: Arc::clone(&stop),
        };
        for (i, b) in all.iter().enumerate() {
            let began = Arc::new(AtomicBool::new(false));
            neighbours.began.push(Arc::clone(&began));
            let stop = Arc::clone(&stop);
            let handle = scope.spawn(move || again_and_again(i, b, doing, &stop, &began));
            neighbours.handles.push(handle);
        }
        Ok(neighbours)
    }

    /// Waits until all background programs have finished their preparations.
    pub fn wait(&self, doing: &Doing<'_>) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let ready = self.began.iter().all(|b| b.load(Ordering::Acquire));
            if ready {
                return Ok(());
            }
            if doing.stop.load(Ordering::Acquire) {
                return Err("stopped".to_owned());
            }
            if self.handles.iter().any(ScopedJoinHandle::is_finished) {
                return Err("a background program ended before the measurement began".to_owned());
            }
            if Instant::now() > end {
                return Err(
                    "a background program did not finish its preparations in time".to_owned(),
                );
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Ends the background programs. If one of them failed before, the run is invalid.
    pub fn end(self) -> Result<Vec<BackgroundPart>, String> {
        self.stop.store(true, Ordering::Release);
        let mut parts = Vec::new();
        let mut failed = None;
        for h in self.handles {
            match h.join() {
                Ok(Ok(part)) => parts.push(part),
                Ok(Err(why)) => failed = failed.or(Some(why)),
                Err(_) => failed = failed.or(Some("internal error".to_owned())),
            }
        }
        match failed {
            Some(why) => Err(format!("background workload: {why}")),
            None => Ok(parts),
        }
    }
}

fn again_and_again(
    i: usize,
    b: &BackgroundSpec,
    doing: &Doing<'_>,
    stop: &Arc<AtomicBool>,
    began: &Arc<AtomicBool>,
) -> Part {
    let name = b.workload.name();
    let name = name.rsplit('/').next().unwrap_or(name);
    let started = Instant::now();
    let mut part = BackgroundPart {
        name: format!("beside/{name}"),
        workload: name.to_owned(),
        ..BackgroundPart::default()
    };
    loop {
        let own = Doing {
            on: doing.on,
            mark: &format!("{}/{i}", doing.mark),
            seed: doing.seed + 1000 * (i as u64 + 1) + u64::from(part.rounds),
            limit_s: None,
            stop: Arc::clone(stop),
            began: Arc::clone(began),
            on_start: None,
        };
        let ran = once(&b.workload, &own);
        part.rounds += 1;
        let over = stop.load(Ordering::Acquire) || doing.stop.load(Ordering::Acquire);
        match ran {
            Ok(record) => take(&mut part, record, b.again),
            // The program failed because it was stopped here.
            Err(_) if over => {}
            Err(why) => return Err(why),
        }
        if over || !b.again {
            if !over {
                let ns = started.elapsed().as_nanos();
                part.ended_ns = u64::try_from(ns).ok();
            }
            return Ok(part);
        }
    }
}

/// Adds the result of one pass of a background program.
fn take(part: &mut BackgroundPart, record: Record, again: bool) {
    part.params = record.params;
    part.operations = record.operations;
    part.tasks = record.tasks;
    if !again {
        part.metrics = record
            .metric
            .into_iter()
            .chain(record.more_metrics)
            .collect();
    }
}
