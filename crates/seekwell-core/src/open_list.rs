//! A list that begins with what is built in and to which a program may add while it runs: the
//! registries of schedulers, devices and workloads.
//!
//! Nothing is ever taken out, so what was handed out stays good for ever; what is added lives as
//! long as the process. Reading takes a lock for an instant: for setting a run up, not for
//! requests.

use std::sync::{PoisonError, RwLock};

/// The list.
#[derive(Debug)]
pub struct OpenList<T: 'static>(RwLock<&'static [T]>);

impl<T: Copy> OpenList<T> {
    /// With what is built in.
    pub const fn new(built_in: &'static [T]) -> Self {
        OpenList(RwLock::new(built_in))
    }
    /// Everything so far: what is built in, then what was added, in that order.
    pub fn all(&self) -> &'static [T] {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds `item` at the end if `fits` has nothing against it, seeing everything so far.
    ///
    /// # Errors
    /// What `fits` says.
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
