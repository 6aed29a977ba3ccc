//! A list of built-in items, to which a program can add items at run time. The registries of
//! schedulers, devices and workloads are such lists.
//!
//! Items are never removed, so that references stay valid. Added items exist until the process
//! ends. Each read takes a lock for a moment. So read the list when a run is set up, not for each
//! request.

use std::sync::{PoisonError, RwLock};

/// A list of built-in and added items.
#[derive(Debug)]
pub struct OpenList<T: 'static>(RwLock<&'static [T]>);

impl<T: Copy> OpenList<T> {
    /// Returns a list of the built-in items.
    pub const fn new(built_in: &'static [T]) -> Self {
        OpenList(RwLock::new(built_in))
    }
    /// Returns all items: first the built-in items, then the added items in order.
    pub fn all(&self) -> &'static [T] {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds `item` at the end, if `fits` returns `Ok`. `fits` gets all items that are in the list.
    ///
    /// # Errors
    /// The error that `fits` returns.
    pub fn add<E>(&self, item: T, fits: impl FnOnce(&[T]) -> Result<(), E>) -> Result<(), E> {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        fits(*all)?;
        let mut longer = all.to_vec();
        longer.push(item);
        *all = Box::leak(longer.into_boxed_slice());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_items_follow_the_built_in_ones() {
        static LIST: OpenList<&str> = OpenList::new(&["noop", "cfq"]);
        let before = LIST.all();
        let new = |all: &[&str]| match all.contains(&"mine") {
            true => Err("twice"),
            false => Ok(()),
        };
        assert_eq!(LIST.add("mine", new), Ok(()));
        assert_eq!(LIST.add("mine", new), Err("twice"));
        assert_eq!(LIST.all(), ["noop", "cfq", "mine"]);
        assert_eq!(
            before,
            ["noop", "cfq"],
            "what was handed out stays as it was"
        );
    }
}
