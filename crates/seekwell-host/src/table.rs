//! Objects that tasks share by number: open files, mapped ranges, rings.
//!
//! The lock is held during the look-up of a number, never during a system call. Closing a file can
//! take as long as disk I/O (ext4 writes a replaced file back on close), and so can dropping a ring
//! or a mapping. Other tasks must not wait for it.

use seekwell_core::Errno;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Objects by number.
#[derive(Debug)]
pub struct Table<T>(RwLock<Slots<T>>);

#[derive(Debug)]
struct Slots<T> {
    all: Vec<Option<Arc<T>>>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(RwLock::new(Slots {
            all: Vec::new(),
            free: Vec::new(),
        }))
    }
}

impl<T> Table<T> {
    fn reading(&self) -> RwLockReadGuard<'_, Slots<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
    fn writing(&self) -> RwLockWriteGuard<'_, Slots<T>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
    /// Assigns a number to a value, and reuses freed numbers.
    pub fn insert(&self, value: T) -> u32 {
        let value = Some(Arc::new(value));
        let mut t = self.writing();
        match t.free.pop() {
            Some(i) => {
                t.all[i as usize] = value;
                i
            }
            None => {
                t.all.push(value);
                (t.all.len() - 1) as u32
            }
        }
    }
    /// The value of a number; EBADF if it has none.
    pub fn get(&self, i: u32) -> Result<Arc<T>, Errno> {
        let value = self.reading().all.get(i as usize).cloned().flatten();
        value.ok_or(Errno::EBADF)
    }
    /// Frees a number; EBADF if it has no value. The value is dropped after the lock is released:
    /// here, or by the last task that uses it.
    pub fn remove(&self, i: u32) -> Result<(), Errno> {
        let mut t = self.writing();
        let slot = t.all.get_mut(i as usize).ok_or(Errno::EBADF)?;
        let value = slot.take().ok_or(Errno::EBADF)?;
        t.free.push(i);
        drop(t);
        drop(value);
        Ok(())
    }
    /// Visits every value under the lock; `look` must not make a system call.
    pub fn for_each(&self, look: impl FnMut(&T)) {
        let t = self.reading();
        t.all.iter().flatten().map(AsRef::as_ref).for_each(look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Records whether its table is unlocked during the drop, as it must be while a file closes.
    struct Closing(Arc<Table<Closing>>, Arc<Mutex<Vec<bool>>>);

    impl Drop for Closing {
        fn drop(&mut self) {
            let free = self.0.0.try_write().is_ok();
            let mut seen = self.1.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(free);
        }
    }

    #[test]
    fn a_value_is_dropped_while_the_table_is_free() {
        let (table, seen) = (Arc::new(Table::default()), Arc::default());
        let new = || Closing(Arc::clone(&table), Arc::clone(&seen));
        let (a, b) = (table.insert(new()), table.insert(new()));
        let in_use = table.get(b).expect("there");
        assert_eq!((table.remove(a), table.remove(b)), (Ok(()), Ok(())));
        let seen = || seen.lock().map(|s| s.clone()).unwrap_or_default();
        assert_eq!(seen(), [true], "b is still in use");
        drop(in_use);
        assert_eq!(seen(), [true, true]);
    }

    #[test]
    fn numbers_are_given_back() {
        let t = Table::default();
        let (a, b) = (t.insert("a"), t.insert("b"));
        assert!(a != b && t.get(a).is_ok_and(|v| *v == "a"));
        assert_eq!(t.remove(a), Ok(()));
        assert_eq!(t.remove(a), Err(Errno::EBADF));
        assert_eq!(t.get(a), Err(Errno::EBADF));
        assert_eq!((t.insert("c"), t.get(99)), (a, Err(Errno::EBADF)));
        let mut all = Vec::new();
        t.for_each(|v| all.push(*v));
        assert_eq!(all, ["c", "b"]);
    }
}
