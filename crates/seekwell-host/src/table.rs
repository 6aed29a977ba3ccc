//! Objects that tasks share by number: open files, mapped ranges, rings.
//!
//! A part of the table is locked while a number is looked up, and never during a system call.
//! Closing a file can take as long as disk I/O, because ext4 writes back a replaced file on close.
//! Dropping a ring or a mapping can take as long. Other tasks must not wait for this.
//!
//! The table has several parts with one lock each. With one lock for all parts, a hundred tasks that
//! open and close files would often wait for that lock.

use seekwell_core::Errno;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Parts of a table. The lowest bits of a number are its part.
const PARTS: u32 = 64;

/// Objects by number.
#[derive(Debug)]
pub struct Table<T>([RwLock<Slots<T>>; PARTS as usize]);

#[derive(Debug)]
struct Slots<T> {
    all: Vec<Option<Arc<T>>>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table(std::array::from_fn(|_| {
            RwLock::new(Slots {
                all: Vec::new(),
                free: Vec::new(),
            })
        }))
    }
}

/// The part in which the current thread inserts. Threads are assigned to parts in turn.
fn own_part() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static PART: Cell<Option<u32>> = const { Cell::new(None) });
    PART.with(|part| {
        let own = part
            .get()
            .unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed) % PARTS);
        part.set(Some(own));
        own
    })
}

impl<T> Table<T> {
    fn read_part(&self, part: u32) -> RwLockReadGuard<'_, Slots<T>> {
        let lock = &self.0[part as usize];
        lock.read().unwrap_or_else(PoisonError::into_inner)
    }
    fn write_part(&self, part: u32) -> RwLockWriteGuard<'_, Slots<T>> {
        let lock = &self.0[part as usize];
        lock.write().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds a value and returns its number. Numbers that were freed are reused.
    pub fn insert(&self, value: T) -> u32 {
        let value = Some(Arc::new(value));
        let part = own_part();
        let mut t = self.write_part(part);
        let slot = match t.free.pop() {
            Some(slot) => {
                t.all[slot as usize] = value;
                slot
            }
            None => {
                t.all.push(value);
                (t.all.len() - 1) as u32
            }
        };
        slot * PARTS + part
    }
    /// Returns the value of a number, or EBADF if it has no value.
    pub fn get(&self, i: u32) -> Result<Arc<T>, Errno> {
        let t = self.read_part(i % PARTS);
        let value = t.all.get((i / PARTS) as usize).cloned().flatten();
        value.ok_or(Errno::EBADF)
    }
    /// Frees a number. Returns EBADF if it has no value. The value is dropped after the lock is
    /// released, either here or by the last task that uses the value.
    pub fn remove(&self, i: u32) -> Result<(), Errno> {
        let mut t = self.write_part(i % PARTS);
        let slot = t.all.get_mut((i / PARTS) as usize).ok_or(Errno::EBADF)?;
        let value = slot.take().ok_or(Errno::EBADF)?;
        t.free.push(i / PARTS);
        drop(t);
        drop(value);
        Ok(())
    }
    /// Calls `look` for every value. No lock is held during the call.
    pub fn for_each(&self, look: impl FnMut(&T)) {
        let mut all: Vec<Arc<T>> = Vec::new();
        for part in 0..PARTS {
            all.extend(self.read_part(part).all.iter().flatten().cloned());
        }
        all.iter().map(AsRef::as_ref).for_each(look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Records whether the table is unlocked while a value is dropped. It must be unlocked, because
    /// closing a file may take long.
    struct Closing(Arc<Table<Closing>>, Arc<Mutex<Vec<bool>>>);

    impl Drop for Closing {
        fn drop(&mut self) {
            let free = self.0.0.iter().all(|part| part.try_write().is_ok());
            let mut seen = self.1.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(free);
        }
    }

    #[test]
    fn removed_value_is_dropped_outside_the_table_lock() {
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
    fn removed_numbers_are_reused() {
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
