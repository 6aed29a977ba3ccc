//! A device in Python with the interface of a built-in device. Each call is passed to Python, and
//! its result is checked.

use super::Class;
use crate::parameters;
use crate::scheduler::view::op_name;
use crate::scheduler::watch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seekwell::sdk::device::Preset;
use seekwell_core::{
    Accept, Command as OfCommand, Device, DeviceFacts, DeviceStats, Done, Instant, Nanos, Op,
    Sector, Sectors,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A command that is sent to a device.
#[pyclass(frozen, get_all, module = "seekwell")]
pub struct Command {
    /// Number of the command, unique among the outstanding commands.
    id: u32,
    /// "read", "write", "flush", "discard" or "write_zeroes".
    op: &'static str,
    /// First sector, in units of 512 bytes.
    sector: u64,
    /// Length in sectors. 0 for a flush.
    sectors: u32,
    /// Whether the data must be written through to the medium.
    fua: bool,
}

#[pymethods]
impl Command {
    /// The first sector after the command.
    #[getter]
    fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.sectors))
    }
    fn __repr__(&self) -> String {
        let (id, op, sector, n) = (self.id, self.op, self.sector, self.sectors);
        format!("<Command {id}: {op} {sector}+{n}>")
    }
}

/// A command in the device.
struct Inside {
    since: Instant,
    error: bool,
}

/// An instance of a device class.
pub struct Bridge {
    class: Arc<Class>,
    object: Py<PyAny>,
    facts: DeviceFacts,
    inside: BTreeMap<u32, Inside>,
    /// For a class with `serve`: the outstanding commands, by completion time and order of arrival.
    due: BTreeMap<(Instant, u64), u32>,
    came: u64,
    /// The value that `next_event` returned. It is dropped when a command arrives or the device
    /// advances past it.
    next: Cell<Option<Option<Instant>>>,
    busy_since: Instant,
    stats: DeviceStats,
}

impl Bridge {
    /// Creates an instance of a class. An exception of the class becomes an error.
    pub fn new(class: Arc<Class>, p: &Preset, seed: u64) -> PyResult<Self> {
        Python::attach(|py| {
            let _call = watch::enter(py);
            let kind = class.of.bind(py);
            let object = kind.call_method1("__new__", (kind,))?;
            object.setattr("seed", seed)?;
            for q in &class.parameters {
                let value = match q.kind {
                    parameters::Kind::Flag => f64::from(u8::from(p.flag(q.name))),
                    _ => p.num_opt(q.name).unwrap_or(q.min),
                };
                parameters::set(&object, q, value)?;
            }
            object.call_method0("__init__")?;
            let facts = facts(&class.name, &object)?;
            Ok(Bridge {
                object: object.unbind(),
                facts,
                class: class.clone(),
                inside: BTreeMap::new(),
                due: BTreeMap::new(),
                came: 0,
                next: Cell::new(None),
                busy_since: Instant::START,
                stats: DeviceStats::default(),
            })
        })
    }

    fn ask<R>(&self, method: &str, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> R {
        let called = Python::attach(|py| {
            let _call = watch::enter(py);
            call(self.object.bind(py))
        });
        called.unwrap_or_else(|e| {
            watch::fail("DeviceError", watch::words(&self.class.name, method, &e), e)
        })
    }

    fn misuse(&self, what: &str) -> ! {
        let what = format!("{}.{what}", self.class.name);
        let by = PyValueError::new_err(what.clone());
        watch::fail("DeviceError", what, by)
    }

    fn done(&mut self, id: u32, at: Instant, out: &mut Vec<Done>) {
        let Some(of) = self.inside.remove(&id) else {
            self.misuse(&format!(
                "advance says that command {id} is done, which is not inside"
            ));
        };
        if at < of.since {
            self.misuse(&format!(
                "advance says that command {id} was done at {} ns, before it came at {} ns",
                at.since_start(),
                of.since.since_start()
            ));
        }
        if self.inside.is_empty() {
            self.stats.busy += at.since(self.busy_since);
        }
        self.stats.media_ops += 1;
        let error = of.error;
        out.push(Done { id, at, error });
    }

    /// Handles the completions that the `advance` method of the class returned.
    fn told(&mut self, to: Instant, out: &mut Vec<Done>) {
        let said: Vec<(u32, u64)> = self.ask("advance", |object| {
            let said = object.call_method1("advance", (to.since_start(),))?;
            said.try_iter()?.map(|d| d?.extract()).collect()
        });
        let mut last = 0;
        for (id, at) in said {
            if at < last || at > to.since_start() {
                self.misuse(&format!(
                    "advance({}) says that command {id} was done at {at} ns: completions come in the \
                     order of their times, none after the time that was asked for",
                    to.since_start()
                ));
            }
            last = at;
            self.done(id, Instant::START + Nanos(at), out);
        }
    }
}

/// Reads the facts about the device from the attributes of the class.
fn facts(name: &str, object: &Bound<'_, PyAny>) -> PyResult<DeviceFacts> {
    fn get<'py, T: FromPyObjectOwned<'py>>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
        let value = object.getattr(name)?;
        value.extract::<T>().map_err(|e| {
            let e: PyErr = e.into();
            PyValueError::new_err(format!("{name}: {e}"))
        })
    }
    let capacity: u64 = get(object, "capacity")?;
    let depth: u32 = get(object, "depth")?;
    let max_sectors: u32 = get(object, "max_sectors")?;
    let hw_queues: u16 = get(object, "hw_queues")?;
    // A file system needs a minimum size. Addresses beyond 2^48 sectors are rejected as errors.
    if !(65_536..=1 << 48).contains(&capacity) {
        let what = format!("capacity: {capacity} sectors is not within 65536..=2**48");
        return Err(PyValueError::new_err(what));
    }
    if depth == 0 || depth > 65_536 || hw_queues == 0 || max_sectors < 8 {
        let what = "depth (up to 65536) and hw_queues have to be 1 or more, max_sectors 8 or more";
        return Err(PyValueError::new_err(what));
    }
    Ok(DeviceFacts {
        rotational: get(object, "rotational")?,
        hw_queues,
        write_cache: get(object, "write_cache")?,
        fua: get(object, "fua")?,
        max_sectors: Sectors(max_sectors),
        ..DeviceFacts::plain(name, Sector(capacity), depth)
    })
}

impl Device for Bridge {
    fn accept(&mut self, now: Instant, c: OfCommand) -> Accept {
        if self.inside.len() >= self.facts.commands() {
            return Accept::Busy;
        }
        let command = Command {
            id: c.id,
            op: op_name(c.op),
            sector: c.sector.0,
            sectors: c.sectors.0,
            fua: c.fua,
        };
        let now_ns = now.since_start();
        if self.class.simple {
            let at: u64 = self.ask("serve", |object| {
                object.call_method1("serve", (now_ns, command))?.extract()
            });
            if at < now_ns {
                self.misuse(&format!(
                    "serve says that command {} is done at {at} ns, before it came at {now_ns} ns",
                    c.id
                ));
            }
            self.due
                .insert((Instant::START + Nanos(at), self.came), c.id);
            self.came += 1;
        } else {
            let taken = self.ask("accept", |object| {
                object
                    .call_method1("accept", (now_ns, command))?
                    .is_truthy()
            });
            if !taken {
                if self.inside.is_empty() {
                    self.misuse(
                        "accept rejects a command while none is inside: it would never be sent again",
                    );
                }
                return Accept::Busy;
            }
        }
        if self.inside.is_empty() {
            self.busy_since = now;
        }
        let end = c.sector.0.checked_add(u64::from(c.sectors.0));
        let beyond = end.is_none_or(|e| e > self.facts.capacity.0);
        let of = Inside {
            since: now,
            error: beyond && c.op != Op::Flush,
        };
        self.inside.insert(c.id, of);
        self.next.set(None);
        Accept::Accepted
    }

    fn next_event(&self) -> Option<Instant> {
        if self.class.simple {
            return self.due.first_key_value().map(|d| d.0.0);
        }
        if let Some(known) = self.next.get() {
            return known;
        }
        let next: Option<u64> = self.ask("next_event", |object| {
            object.call_method0("next_event")?.extract()
        });
        let next = next.map(|at| Instant::START + Nanos(at));
        if next.is_none() && !self.inside.is_empty() {
            self.misuse(&format!(
                "next_event says None while {} commands are inside: they would never be done",
                self.inside.len()
            ));
        }
        self.next.set(Some(next));
        next
    }

    fn advance(&mut self, to: Instant, out: &mut Vec<Done>) {
        if self.class.simple {
            while let Some(first) = self.due.first_entry() {
                let at = first.key().0;
                if at > to {
                    return;
                }
                let id = first.remove();
                self.done(id, at, out);
            }
            return;
        }
        // The device cannot change by itself before the time that `next_event` returned.
        if self.next_event().is_none_or(|at| at > to) {
            return;
        }
        self.told(to, out);
        self.next.set(None);
        if self.next_event().is_some_and(|at| at <= to) {
            self.misuse(&format!(
                "next_event names a time up to {} ns, which advance was asked to go to",
                to.since_start()
            ));
        }
    }

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }
    fn stats(&self) -> DeviceStats {
        self.stats
    }
    fn state(&self, out: &mut String) {
        if self.class.tells {
            *out += &self.ask("state", |object| {
                Ok(object.call_method0("state")?.str()?.to_string())
            });
        } else {
            *out += &format!("{} inside of {}", self.inside.len(), self.facts.commands());
        }
    }
}
