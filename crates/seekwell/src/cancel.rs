//! The token that cancels runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A token that cancels runs. It can be set from any thread or signal handler, and cannot be reset.
/// Clones share their state and are cheap.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Returns a token that is not set.
    pub fn new() -> Self {
        Cancel::default()
    }
    /// Ends all runs that use the token. Their records contain what was measured until then. No
    /// other runs are started.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
    /// Returns whether the token is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
    /// Returns the flag that all clones share.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
