//! The kernel's own tasks.

use crate::executor::Actor;
use seekwell_core::TaskId;

/// First task number of a program. The kernel's own tasks have lower numbers.
pub const FIRST_USER_TASK: u32 = 32;
/// The flusher thread of the device.
pub(crate) const FLUSHER: Actor = 1;
/// The journal thread.
pub(crate) const JOURNAL: Actor = 2;
/// The thread that converts unwritten blocks.
pub(crate) const CONVERTER: Actor = 5;
/// The thread of pdflush that does background writeback.
pub(crate) const PDFLUSH: Actor = 3;
/// The thread of pdflush that wakes up periodically.
pub(crate) const PDFLUSH_PERIODIC: Actor = PDFLUSH + 1;

/// Returns the name of a kernel thread, or `None` for a task of a program.
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
