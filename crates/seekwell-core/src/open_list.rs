//! A list of built-in items to which a program may add at run time: the registries of schedulers,
//! devices and workloads.
//!
//! Items are never removed, so references stay valid, and added items live as long as the process.
//! Reading takes a lock for a moment: suitable for the set-up of a run, not for each request.

use std::sync::{PoisonError, RwLock};

/// The list.
#[derive(Debug)]
pub struct OpenList<T: 'static>(RwLock<&'static [T]>);

impl<T: Copy> OpenList<T> {
    /// A list of the built-in items.
    pub const fn new(built_in: &'static [T]) -> Self {
        OpenList(RwLock::new(built_in))
    }
    /// All items: the built-in ones, then the added ones in order.
    pub fn all(&self) -> &'static [T] {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds `item` at the end if `fits` accepts it; `fits` sees all items so far.
    ///
    /// # Errors
    /// The error of `fits`.
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
    fn what_is_added_stands_behind_what_is_built_in() {
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
