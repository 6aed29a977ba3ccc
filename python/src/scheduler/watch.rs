//! Watches calls to Python: the duration of each call, and the exception that it raised.

use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Longest time that a call may take, ms.
static LIMIT_MS: AtomicU64 = AtomicU64::new(10_000);

/// Sets the longest time in seconds of wall-clock time that a callback in Python may take. An
/// exception ends a longer callback. The default is 10 s.
#[pyfunction]
pub fn set_callback_limit(seconds: f64) -> PyResult<()> {
    if !(seconds.is_finite() && seconds > 0.0 && seconds < 1e9) {
        let what = format!("callback limit: {seconds} is not a valid number of seconds");
        return Err(crate::fault::input(&what));
    }
    LIMIT_MS.store(((seconds * 1e3) as u64).max(1), Ordering::Relaxed);
    Ok(())
}

fn now_ms() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    // The value 0 means that no call is under way.
    BEGAN.get_or_init(Instant::now).elapsed().as_millis() as u64 + 1
}

/// A thread on which Python is called.
#[derive(Default)]
struct Thread {
    /// The thread's number in Python.
    ident: AtomicU64,
    /// Time at which the present call began. 0: no call is under way.
    began_ms: AtomicU64,
}

static THREADS: Mutex<Vec<std::sync::Weak<Thread>>> = Mutex::new(Vec::new());

/// An exception from Python, and its description.
pub struct Raised {
    /// The class, the method, and the exception, in words.
    pub what: String,
    /// The exception.
    pub by: PyErr,
    /// Name of the class in `seekwell._errors` that is raised for it.
    class: &'static str,
}

thread_local! {
    static OWN: RefCell<Option<Arc<Thread>>> = const { RefCell::new(None) };
    static RAISED: RefCell<Option<Raised>> = const { RefCell::new(None) };
}

/// Marks a call as under way for as long as this value exists.
pub struct Call(Arc<Thread>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.began_ms.store(0, Ordering::Release);
    }
}

/// Marks the start of a call.
pub fn enter(py: Python<'_>) -> Call {
    let thread = OWN.with_borrow_mut(|own| own.get_or_insert_with(|| known(py)).clone());
    thread.began_ms.store(now_ms(), Ordering::Release);
    Call(thread)
}

fn known(py: Python<'_>) -> Arc<Thread> {
    let ident = py
        .import("threading")
        .and_then(|m| m.call_method0("get_ident"));
    let ident: u64 = ident.and_then(|i| i.extract()).unwrap_or(0);
    let thread = Arc::new(Thread {
        ident: AtomicU64::new(ident),
        began_ms: AtomicU64::new(0),
    });
    let mut all = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|t| t.strong_count() > 0);
    all.push(Arc::downgrade(&thread));
    thread
}

/// Ends calls that take too long. With `all`, ends every call that is under way.
pub fn overdue(py: Python<'_>, all: bool) {
    let limit = LIMIT_MS.load(Ordering::Relaxed);
    let late: Vec<u64> = {
        let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        let live = threads.iter().filter_map(std::sync::Weak::upgrade);
        live.filter(|t| {
            let began = t.began_ms.load(Ordering::Acquire);
            began > 0 && (all || now_ms().saturating_sub(began) > limit)
        })
        .map(|t| t.ident.load(Ordering::Relaxed))
        .collect()
    };
    for ident in late {
        // The exception is raised through ctypes, because pyo3 has no safe function to raise in
        // another thread. If it cannot be raised now, it is tried again at the next check.
        let _ = raise_in(py, ident);
    }
}

fn raise_in(py: Python<'_>, ident: u64) -> PyResult<()> {
    let ctypes = py.import("ctypes")?;
    let class = py.import("seekwell._errors")?.getattr("Overdue")?;
    let ident = ctypes.getattr("c_ulong")?.call1((ident,))?;
    let class = ctypes.getattr("py_object")?.call1((class,))?;
    let api = ctypes.getattr("pythonapi")?;
    api.call_method1("PyThreadState_SetAsyncExc", (ident, class))?;
    Ok(())
}

/// Ends the run, because a callback failed. The guard of the run turns this into an exception of
/// the given class of `seekwell._errors`.
pub fn fail(class: &'static str, what: String, by: PyErr) -> ! {
    let raised = Raised {
        what: what.clone(),
        by,
        class,
    };
    // The last exception is kept. In a search for the smallest failing case, it belongs to that
    // case.
    RAISED.set(Some(raised));
    // Bypass the panic hook, because the caller in Python gets an exception instead of standard
    // error.
    std::panic::resume_unwind(Box::new(what))
}

/// Describes the exception that a method raised, with its position in the source.
pub fn words(name: &str, method: &str, e: &PyErr) -> String {
    Python::attach(|py| {
        if e.get_type(py).name().is_ok_and(|n| n == "Overdue") {
            return format!(
                "{name}.{method} did not return: it was ended after the time a callback may take \
                 (seekwell.set_callback_limit), or because the run was interrupted"
            );
        }
        let at = place(py, e).map_or(String::new(), |(file, line)| format!(" ({file}:{line})"));
        let value = e.value(py).repr();
        let value = value.map_or_else(|_| "something".to_owned(), |r| r.to_string());
        format!("{name}.{method} raised {value}{at}")
    })
}

/// Returns the position where an exception was raised, in the user's code and not in this package.
fn place(py: Python<'_>, e: &PyErr) -> Option<(String, u32)> {
    let mut at = e.traceback(py)?.into_any();
    let mut last = None;
    loop {
        let frame = at.getattr("tb_frame").ok()?;
        let module = frame.getattr("f_globals").ok()?.get_item("__name__");
        let module: String = module
            .ok()
            .and_then(|m| m.extract().ok())
            .unwrap_or_default();
        let next = at.getattr("tb_next").ok()?;
        let own = module == "seekwell" || module.starts_with("seekwell.");
        if !own || (last.is_none() && next.is_none()) {
            let line = at.getattr("tb_lineno").ok()?.extract().ok()?;
            let code = frame.getattr("f_code").ok()?;
            last = Some((code.getattr("co_filename").ok()?.extract().ok()?, line));
        }
        if next.is_none() {
            return last;
        }
        at = next;
    }
}

/// Takes the exception that was raised on this thread since the last call.
pub fn take() -> Option<Raised> {
    RAISED.with_borrow_mut(Option::take)
}

/// Returns the exception for the caller of the run.
pub fn as_error(raised: Raised) -> PyErr {
    Python::attach(|py| {
        let made = || -> PyResult<PyErr> {
            let class = py.import("seekwell._errors")?.getattr(raised.class)?;
            let e = PyErr::from_value(class.call1((raised.what.as_str(),))?);
            e.set_cause(py, Some(raised.by.clone_ref(py)));
            Ok(e)
        };
        made().unwrap_or_else(|e| e)
    })
}

/// Returns the reason for a failed run on this thread. If Python caused it, returns Python's
/// description.
pub fn plain(why: &str) -> String {
    take().map_or_else(|| why.to_owned(), |raised| raised.what)
}
