//! A split virtqueue, as the device sees it.

use crate::error::GuestError;
use crate::memory::Mapping;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
const DESCRIPTOR_BYTES: u64 = 16;
/// The largest chain that is accepted: a header, 1,024 segments and a status byte.
const CHAIN_MAX: usize = 1026;
/// The largest queue of the specification.
const SIZE_MAX: u32 = 32_768;

/// One buffer of a chain: address in the memory and length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Offset in the memory.
    pub at: u64,
    /// Length in bytes.
    pub len: u32,
    /// True if the device writes the buffer.
    pub device_writes: bool,
}

/// A chain of buffers that the guest made available.
#[derive(Debug)]
pub struct Chain {
    /// Index of its first descriptor, which the used ring returns.
    pub head: u16,
    /// The buffers in order.
    pub buffers: Vec<Buffer>,
}

/// The rings of one queue. Addresses are offsets in the memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    /// Number of entries, a power of two.
    pub size: u32,
    /// Address of the descriptor table.
    pub descriptors: u64,
    /// Address of the available ring.
    pub available: u64,
    /// Address of the used ring.
    pub used: u64,
    /// True if the guest has enabled the queue.
    pub enabled: bool,
    next_available: u16,
    next_used: u16,
}

impl Queue {
    /// Sets the number of entries.
    pub fn set_size(&mut self, size: u32) -> Result<(), GuestError> {
        if !size.is_power_of_two() || size > SIZE_MAX {
            return Err(GuestError::disk(format!("a queue of {size} entries")));
        }
        self.size = size;
        Ok(())
    }
    /// Sets the index at which the guest starts.
    pub fn set_base(&mut self, index: u16) {
        (self.next_available, self.next_used) = (index, index);
    }

    /// Takes the next available chain.
    pub fn take(&mut self, memory: &Mapping) -> Result<Option<Chain>, GuestError> {
        if self.size == 0 {
            return Err(GuestError::disk("a kick before the queue has a size"));
        }
        let newest = memory.u16(self.available.saturating_add(2))?;
        Mapping::acquire();
        let waiting = newest.wrapping_sub(self.next_available);
        if waiting == 0 {
            return Ok(None);
        }
        if u32::from(waiting) > self.size {
            return Err(GuestError::disk(format!(
                "{waiting} chains available in a queue of {} entries",
                self.size
            )));
        }
        let slot = u64::from(u32::from(self.next_available) & (self.size - 1));
        let head = memory.u16(self.available.saturating_add(4 + 2 * slot))?;
        self.next_available = self.next_available.wrapping_add(1);
        let buffers = self.chain(memory, head)?;
        Ok(Some(Chain { head, buffers }))
    }

    fn chain(&self, memory: &Mapping, head: u16) -> Result<Vec<Buffer>, GuestError> {
        let (mut table, mut entries, mut at) = (self.descriptors, self.size, u32::from(head));
        let (mut buffers, mut indirect) = (Vec::with_capacity(4), false);
        loop {
            if at >= entries {
                return Err(GuestError::disk(format!("descriptor {at} of {entries}")));
            }
            let d = table.saturating_add(DESCRIPTOR_BYTES * u64::from(at));
            let (address, len) = (memory.u64(d)?, memory.u32(d.saturating_add(8))?);
            let (flags, next) = (
                memory.u16(d.saturating_add(12))?,
                memory.u16(d.saturating_add(14))?,
            );
            if flags & INDIRECT != 0 {
                if indirect || len == 0 || !u64::from(len).is_multiple_of(DESCRIPTOR_BYTES) {
                    return Err(GuestError::disk("a wrong indirect descriptor"));
                }
                indirect = true;
                (table, entries, at) = (address, len / DESCRIPTOR_BYTES as u32, 0);
                continue;
            }
            if buffers.len() == CHAIN_MAX {
                return Err(GuestError::disk("a chain without an end"));
            }
            buffers.push(Buffer {
                at: address,
                len,
                device_writes: flags & WRITE != 0,
            });
            if flags & NEXT == 0 {
                return Ok(buffers);
            }
            at = u32::from(next);
        }
    }

    /// Returns a chain to the guest; `written` is the number of bytes that the device wrote.
    pub fn give_back(
        &mut self,
        memory: &Mapping,
        head: u16,
        written: u32,
    ) -> Result<(), GuestError> {
        let slot = u64::from(u32::from(self.next_used) & (self.size - 1));
        let at = self.used.saturating_add(4 + 8 * slot);
        memory.write(at, &u32::from(head).to_ne_bytes())?;
        memory.write(at.saturating_add(4), &written.to_ne_bytes())?;
        self.next_used = self.next_used.wrapping_add(1);
        memory.publish_u16(self.used.saturating_add(2), self.next_used)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    /// Size of the memory in tests.
    pub const BYTES: usize = 1 << 16;
    const TABLE: u64 = 0x1000;
    const AVAILABLE: u64 = 0x2000;
    const USED: u64 = 0x3000;

    /// Returns memory that is filled with zeros.
    pub fn memory() -> Mapping {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&fd, BYTES as u64).expect("size");
        Mapping::new(&fd, BYTES).expect("mapping")
    }

    /// Returns a queue of 8 entries at fixed addresses.
    pub fn queue() -> Queue {
        Queue {
            size: 8,
            descriptors: TABLE,
            available: AVAILABLE,
            used: USED,
            enabled: true,
            ..Queue::default()
        }
    }

    /// Writes a descriptor of a table.
    pub fn describe(m: &Mapping, table: u64, i: u64, at: u64, len: u32, flags: u16, next: u16) {
        let d = table + 16 * i;
        m.write(d, &at.to_le_bytes()).expect("inside");
        m.write(d + 8, &len.to_le_bytes()).expect("inside");
        m.write(d + 12, &flags.to_le_bytes()).expect("inside");
        m.write(d + 14, &next.to_le_bytes()).expect("inside");
    }

    /// Makes a chain available.
    pub fn offer(m: &Mapping, heads: &[u16]) {
        for (i, h) in heads.iter().enumerate() {
            m.write(AVAILABLE + 4 + 2 * i as u64, &h.to_le_bytes())
                .expect("inside");
        }
        m.write(AVAILABLE + 2, &(heads.len() as u16).to_le_bytes())
            .expect("inside");
    }

    #[test]
    fn chain_of_three_buffers_is_taken_and_given_back() {
        let (m, mut q) = (memory(), queue());
        describe(&m, TABLE, 2, 0x100, 16, NEXT, 5);
        describe(&m, TABLE, 5, 0x200, 4096, NEXT | WRITE, 0);
        describe(&m, TABLE, 0, 0x300, 1, WRITE, 0);
        offer(&m, &[2]);
        let chain = q.take(&m).expect("valid").expect("one chain");
        let lengths: Vec<u32> = chain.buffers.iter().map(|b| b.len).collect();
        assert_eq!((chain.head, lengths), (2, vec![16, 4096, 1]));
        assert!(q.take(&m).expect("valid").is_none());
        q.give_back(&m, 2, 4097).expect("inside");
        assert_eq!(m.u16(USED + 2).expect("inside"), 1);
        assert_eq!(m.u32(USED + 4).expect("inside"), 2);
        assert_eq!(m.u32(USED + 8).expect("inside"), 4097);
    }

    #[test]
    fn indirect_table_is_followed_once() {
        let (m, mut q) = (memory(), queue());
        describe(&m, TABLE, 0, 0x4000, 32, INDIRECT, 0);
        describe(&m, 0x4000, 0, 0x100, 16, NEXT, 1);
        describe(&m, 0x4000, 1, 0x300, 1, WRITE, 0);
        offer(&m, &[0]);
        assert_eq!(
            q.take(&m).expect("valid").expect("a chain").buffers.len(),
            2
        );
        // An indirect table inside an indirect table is a violation.
        let mut q = queue();
        describe(&m, 0x4000, 1, 0x4000, 32, INDIRECT, 0);
        assert!(q.take(&m).is_err());
    }

    #[test]
    fn endless_chain_and_wrong_addresses_are_errors() {
        let (m, mut q) = (memory(), queue());
        describe(&m, TABLE, 0, 0x100, 16, NEXT, 0);
        offer(&m, &[0]);
        assert!(q.take(&m).is_err());
        for table in [BYTES as u64 - 8, u64::MAX - 4, u64::MAX] {
            let mut q = Queue {
                descriptors: table,
                ..queue()
            };
            assert!(q.take(&m).is_err(), "{table:#x}");
        }
        offer(&m, &[8]);
        assert!(queue().take(&m).is_err(), "descriptor 8 of 8");
    }

    #[test]
    fn more_chains_than_entries_are_an_error() {
        let (m, mut q) = (memory(), queue());
        m.write(AVAILABLE + 2, &9u16.to_le_bytes()).expect("inside");
        assert!(q.take(&m).is_err());
        assert!(q.set_size(12).is_err() && q.set_size(0).is_err() && q.set_size(1 << 16).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn random_memory_never_panics(
            words in proptest::collection::vec((0u64..BYTES as u64 - 8, any::<u64>()), 0..60),
            descriptors in prop_oneof![Just(TABLE), any::<u64>()],
            used in prop_oneof![Just(USED), any::<u64>()],
        ) {
            let m = memory();
            for (at, value) in words {
                m.write(at, &value.to_le_bytes()).expect("inside");
            }
            let mut q = Queue { descriptors, used, ..queue() };
            for _ in 0..10 {
                if let Ok(Some(c)) = q.take(&m) {
                    let _ = q.give_back(&m, c.head, 1);
                }
            }
        }
    }
}
