//! The kernel's own tasks.

use crate::executor::Actor;
use seekwell_core::TaskId;

/// Task numbers below this are the kernel's own.
pub const FIRST_USER_TASK: u32 = 32;
/// The flusher of the device.
pub(crate) const FLUSHER: Actor = 1;
/// The journal thread.
pub(crate) const JOURNAL: Actor = 2;
/// Converts unwritten blocks.
pub(crate) const CONVERTER: Actor = 5;
/// The background thread of pdflush.
pub(crate) const PDFLUSH: Actor = 3;
/// The periodic thread of pdflush.
pub(crate) const PDFLUSH_PERIODIC: Actor = PDFLUSH + 1;

/// Name of a kernel thread; `None` for a task of a program.
pub fn kernel_thread_name(task: TaskId) -> Option<&'static str> {
    match task.0 {
        FLUSHER => Some("flusher"),
        JOURNAL => Some("journal"),
        PDFLUSH => Some("pdflush background"),
        PDFLUSH_PERIODIC => Some("pdflush periodic"),
        CONVERTER => Some("conversion"),
        _ => None,
    }
}
