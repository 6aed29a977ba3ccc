//! Generates the two BPF programs that measure request latencies inside the kernel.
//!
//! The first program runs when the kernel allocates a request (`block_getrq`). It stores the time
//! in a table of slots, under a hash of the sector. The second program runs when the request
//! completes (`block_rq_complete`). It finds the slot, computes the latency, and counts it in a
//! histogram. So a request costs two short programs and no copy to user space.
//!
//! The table has no chains. If two active requests have the same hash, the later request replaces
//! the earlier one, whose latency is then not counted. A request whose start sector changes by a
//! front merge is not counted either. Both are rare, and the second program counts them.
//!
//! The latency contains the wait in the scheduler and the time in the device. It does not contain
//! the wait for a free request. The kernel's own `await` has the same limits.

use super::event::Layout;
use super::program::{
    ADD_VALUE, ATOMIC_ADD_64, CALL, EXIT, Insn, JUMP_IF, JUMP_IF_32_NOT, LOAD_8, LOAD_32, LOAD_64,
    MOVE, MOVE_VALUE, STORE_32, STORE_64, helper, insn, map,
};

/// Number of slots in the table of active requests. It is a power of two.
pub const SLOTS: u32 = 1 << 14;
/// Length of a slot, bytes: the sector plus one, and the time of the start in ns.
pub const SLOT_BYTES: u32 = 16;

/// Exponent of the upper end of the first bucket: latencies below 1,024 ns.
pub const FIRST: u32 = 10;
/// Number of buckets for each power of two. A bucket is at most 6 % wide.
pub const PER_OCTAVE: u32 = 16;
/// Number of buckets. The last one also contains everything above 68 s.
pub const BUCKETS: u32 = 26 * PER_OCTAVE;
/// Number of counters of one class: the buckets and the sum of the latencies in ns.
pub const STRIDE: u32 = BUCKETS + 1;
/// Number of classes: reads and writes, each in three sizes.
pub const KINDS: u32 = 6;
/// Index of the counter of completions without a start.
pub const MISSED: u32 = KINDS * STRIDE;
/// Number of counters.
pub const COUNTERS: u32 = MISSED + 1;

/// Upper limits of the first two size classes, sectors (16 KiB and 128 KiB).
pub const SIZES: [i32; 2] = [32, 256];

const MULTIPLY_VALUE: u8 = 0x27;
const AND_VALUE: u8 = 0x57;
const SHIFT_LEFT_VALUE: u8 = 0x67;
const SHIFT_RIGHT_VALUE: u8 = 0x77;
const SHIFT_RIGHT: u8 = 0x7f;
const ADD: u8 = 0x0f;
const SUBTRACT: u8 = 0x1f;
const JUMP_IF_NOT: u8 = 0x55;
const JUMP_IF_REGISTER_NOT: u8 = 0x5d;
const JUMP_IF_AT_MOST: u8 = 0xb5;

/// A program under construction whose jumps lead to its last instructions (`out`) or to labels.
#[derive(Default)]
struct Code {
    all: Vec<Insn>,
    /// Positions of the jumps to the end.
    out: Vec<usize>,
}

impl Code {
    fn add(&mut self, code: u8, to: u8, from: u8, offset: usize, value: i32) {
        self.all.push(insn(code, to, from, offset, value));
    }
    /// Adds a jump whose target is set later by [`Self::land`].
    fn jump(&mut self, code: u8, to: u8, from: u8, value: i32) -> usize {
        self.add(code, to, from, 0, value);
        self.all.len() - 1
    }
    /// Lets a jump lead to the next instruction.
    fn land(&mut self, jump: usize) {
        self.all[jump].offset = (self.all.len() - jump - 1) as i16;
    }
    fn jump_out(&mut self, code: u8, to: u8, from: u8, value: i32) {
        let jump = self.jump(code, to, from, value);
        self.out.push(jump);
    }
    fn map(&mut self, to: u8, descriptor: i32) {
        self.all.extend(map(to, descriptor));
    }
    fn call(&mut self, number: i32) {
        self.add(CALL, 0, 0, 0, number);
    }
    fn done(mut self) -> Vec<Insn> {
        for jump in std::mem::take(&mut self.out) {
            self.land(jump);
        }
        self.add(MOVE_VALUE, 0, 0, 0, 0);
        self.add(EXIT, 0, 0, 0, 0);
        self.all
    }

    /// Common start of both programs. It ends the program for other devices, and for requests
    /// without data. Afterwards, register 6 is the event, 7 is the sector plus one, 8 is the number
    /// of sectors, and 0 is the address of the slot.
    fn slot(&mut self, l: &Layout, device: u32, slots: i32) {
        self.add(MOVE, 6, 1, 0, 0);
        self.add(LOAD_32, 2, 6, l.device.0, 0);
        self.jump_out(JUMP_IF_32_NOT, 2, 0, device.cast_signed());
        self.add(LOAD_32, 8, 6, l.sectors.0, 0);
        self.jump_out(JUMP_IF, 8, 0, 0);
        self.add(LOAD_64, 7, 6, l.sector.0, 0);
        self.add(MOVE, 2, 7, 0, 0);
        self.add(MULTIPLY_VALUE, 2, 0, 0, 0x1e37_79b1);
        self.add(SHIFT_RIGHT_VALUE, 2, 0, 0, 18);
        self.add(AND_VALUE, 2, 0, 0, SLOTS.cast_signed() - 1);
        // Zero means an empty slot.
        self.add(ADD_VALUE, 7, 0, 0, 1);
        self.lookup(slots);
    }
    /// Calls the lookup of the array entry whose index is in register 2.
    fn lookup(&mut self, array: i32) {
        self.add(STORE_32, 10, 2, (-4i16) as usize, 0);
        self.add(MOVE, 2, 10, 0, 0);
        self.add(ADD_VALUE, 2, 0, 0, -4);
        self.map(1, array);
        self.call(helper::MAP_LOOKUP);
        self.jump_out(JUMP_IF, 0, 0, 0);
    }
    /// Adds register 1 to the counter at the address in register 0.
    fn count(&mut self) {
        self.add(ATOMIC_ADD_64, 0, 1, 0, 0);
    }
}

/// Returns the program for `block_getrq`.
pub fn started(l: &Layout, device: u32, slots: i32) -> Vec<Insn> {
    let mut c = Code::default();
    c.slot(l, device, slots);
    c.add(MOVE, 9, 0, 0, 0);
    c.call(helper::KTIME_NS);
    c.add(STORE_64, 9, 0, 8, 0);
    c.add(STORE_64, 9, 7, 0, 0);
    c.done()
}

/// Returns the program for `block_rq_complete`.
pub fn completed(l: &Layout, device: u32, slots: i32, counters: i32) -> Vec<Insn> {
    let mut c = Code::default();
    c.slot(l, device, slots);
    c.add(MOVE, 9, 0, 0, 0);
    // Register 8 becomes the first counter of the class: by the direction and the size.
    c.add(MOVE, 3, 8, 0, 0);
    c.add(MOVE_VALUE, 8, 0, 0, 0);
    for limit in SIZES {
        let small = c.jump(JUMP_IF_AT_MOST, 3, 0, limit);
        c.add(ADD_VALUE, 8, 0, 0, STRIDE.cast_signed());
        c.land(small);
    }
    // A write may start with F, for a flush before it.
    c.add(LOAD_8, 2, 6, l.rwbs.0, 0);
    let letter = |l: u8| i32::from(l);
    let plain = c.jump(JUMP_IF_NOT, 2, 0, letter(b'F'));
    c.add(LOAD_8, 2, 6, l.rwbs.0 + 1, 0);
    c.land(plain);
    let read = c.jump(JUMP_IF, 2, 0, letter(b'R'));
    c.jump_out(JUMP_IF_NOT, 2, 0, letter(b'W'));
    c.add(ADD_VALUE, 8, 0, 0, (3 * STRIDE).cast_signed());
    c.land(read);
    // Register 9 becomes the start, or 0 if the slot belongs to another request.
    c.add(LOAD_64, 2, 9, 0, 0);
    let own = c.jump(JUMP_IF_REGISTER_NOT, 2, 7, 0);
    c.add(MOVE_VALUE, 2, 0, 0, 0);
    c.add(STORE_64, 9, 2, 0, 0);
    c.add(LOAD_64, 7, 9, 8, 0);
    c.call(helper::KTIME_NS);
    c.add(SUBTRACT, 0, 7, 0, 0);
    c.add(MOVE, 7, 0, 0, 0);
    // Register 3 becomes the position of the highest bit of the latency, by halving.
    c.add(MOVE, 4, 7, 0, 0);
    c.add(MOVE_VALUE, 3, 0, 0, 0);
    for shift in [32, 16, 8, 4, 2, 1] {
        c.add(MOVE, 5, 4, 0, 0);
        c.add(SHIFT_RIGHT_VALUE, 5, 0, 0, shift);
        let low = c.jump(JUMP_IF, 5, 0, 0);
        c.add(MOVE, 4, 5, 0, 0);
        c.add(ADD_VALUE, 3, 0, 0, shift);
        c.land(low);
    }
    // Register 4 becomes the bucket.
    c.add(MOVE_VALUE, 4, 0, 0, 0);
    let first = c.jump(JUMP_IF_AT_MOST, 3, 0, FIRST.cast_signed() - 1);
    c.add(MOVE, 5, 3, 0, 0);
    c.add(ADD_VALUE, 5, 0, 0, -4);
    c.add(MOVE, 4, 7, 0, 0);
    c.add(SHIFT_RIGHT, 4, 5, 0, 0);
    c.add(AND_VALUE, 4, 0, 0, PER_OCTAVE.cast_signed() - 1);
    c.add(ADD_VALUE, 3, 0, 0, -FIRST.cast_signed());
    c.add(SHIFT_LEFT_VALUE, 3, 0, 0, 4);
    c.add(ADD, 4, 3, 0, 0);
    let inside = c.jump(JUMP_IF_AT_MOST, 4, 0, BUCKETS.cast_signed() - 1);
    c.add(MOVE_VALUE, 4, 0, 0, BUCKETS.cast_signed() - 1);
    c.land(inside);
    c.land(first);
    c.add(MOVE, 9, 4, 0, 0);
    c.add(MOVE_VALUE, 2, 0, 0, 0);
    c.lookup(counters);
    // Counts the bucket and adds the latency to the sum.
    c.add(SHIFT_LEFT_VALUE, 8, 0, 0, 3);
    c.add(SHIFT_LEFT_VALUE, 9, 0, 0, 3);
    c.add(ADD, 0, 8, 0, 0);
    c.add(MOVE, 2, 0, 0, 0);
    c.add(ADD_VALUE, 2, 0, 0, (BUCKETS * 8).cast_signed());
    c.add(ADD, 0, 9, 0, 0);
    c.add(MOVE_VALUE, 1, 0, 0, 1);
    c.count();
    c.add(ATOMIC_ADD_64, 2, 7, 0, 0);
    c.add(MOVE_VALUE, 0, 0, 0, 0);
    c.add(EXIT, 0, 0, 0, 0);
    c.land(own);
    c.add(MOVE_VALUE, 2, 0, 0, 0);
    c.lookup(counters);
    c.add(ADD_VALUE, 0, 0, 0, (MISSED * 8).cast_signed());
    c.add(MOVE_VALUE, 1, 0, 0, 1);
    c.count();
    c.done()
}

/// Returns the bucket of a latency, as the program in the kernel computes it.
pub fn bucket(ns: u64) -> u32 {
    let highest = 63 - ns.max(1).leading_zeros();
    if highest < FIRST {
        return 0;
    }
    let part = (ns >> (highest - 4)) as u32 & (PER_OCTAVE - 1);
    ((highest - FIRST) * PER_OCTAVE + part).min(BUCKETS - 1)
}

/// Returns the middle of a bucket, ns.
pub fn middle_ns(bucket: u32) -> u64 {
    if bucket == 0 {
        return (1 << FIRST) / 2;
    }
    let (octave, part) = (bucket / PER_OCTAVE + FIRST, bucket % PER_OCTAVE);
    let width = 1_u64 << (octave - 4);
    (1_u64 << octave) + u64::from(part) * width + width / 2
}
