//! Buffers for O_DIRECT, and the data that is written.
//!
//! Scripts contain only lengths and no data. Writes contain noise from a fixed random stream, so
//! that file systems cannot compress it. A counter in every 4 KiB makes the blocks different, so
//! that they cannot be deduplicated.

use rand::RngCore;
use seekwell_core::rng::stream;

/// Alignment of memory, offset and length, bytes. It is enough for O_DIRECT on every common device.
pub const ALIGN: usize = 4096;

/// A memory buffer whose start is aligned to [`ALIGN`]. It can grow but never shrinks.
#[derive(Debug, Default)]
pub struct Aligned {
    memory: Vec<u8>,
    offset: usize,
    len: usize,
}

impl Aligned {
    /// Returns a buffer of at least `len` bytes. When the buffer grows, its contents may be lost.
    pub fn room(&mut self, len: usize) -> &mut [u8] {
        if self.len < len {
            let len = len.next_multiple_of(ALIGN);
            self.memory = vec![0; len + ALIGN];
            self.offset = self.memory.as_ptr().align_offset(ALIGN);
            self.len = len;
        }
        &mut self.memory[self.offset..self.offset + len]
    }
}

/// Generates the data that a task writes.
#[derive(Debug, Default)]
pub struct Noise {
    buffer: Aligned,
    filled: usize,
    count: u64,
}

impl Noise {
    /// Returns `len` bytes that differ from all earlier bytes.
    pub fn take(&mut self, len: usize) -> &mut [u8] {
        let fill = self.filled < len;
        let data = self.buffer.room(len);
        if fill {
            stream(len as u64, "content of files").fill_bytes(data);
            self.filled = len;
        }
        for block in data.chunks_mut(ALIGN) {
            self.count += 1;
            for (to, from) in block.iter_mut().zip(self.count.to_le_bytes()) {
                *to = from;
            }
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_buffer_grows_on_demand() {
        let mut a = Aligned::default();
        for len in [1, 4096, 5000, 1 << 20, 512] {
            let m = a.room(len);
            assert_eq!(m.len(), len);
            assert_eq!(m.as_ptr() as usize % ALIGN, 0);
        }
    }

    #[test]
    fn noise_blocks_are_random_and_distinct() {
        let mut n = Noise::default();
        let first = n.take(8192).to_vec();
        let ones: u32 = first.iter().map(|b| b.count_ones()).sum();
        assert!((28_000..38_000).contains(&ones), "{ones} of 65536 bits");
        assert_ne!(first[..4096], first[4096..]);
        assert_ne!(first, n.take(8192));
        assert_eq!(n.take(3).len(), 3);
    }
}
