//! Generates the BPF program of a tracepoint. It copies the events of one device to the ring
//! buffer.
//!
//! The program is generated instruction by instruction, because its offsets come from the running
//! kernel's description of the event. Therefore no compiler and no object file is needed.
//!
//! The program returns immediately if the event is for another device. Then it reserves room in the
//! ring buffer. If there is no room, it counts the event as lost. Otherwise it stores the time, the
//! number of the thread, the CPU and the name of the thread. It copies the event word by word and
//! submits the record.

/// Number of bytes in a record before the bytes of the event.
pub const HEAD: usize = 40;
/// Offset of the first byte of an event that is copied. Programs may not read the bytes before it.
pub const FROM: usize = 8;

/// Numbers of the kernel functions that the program calls.
pub(super) mod helper {
    pub const MAP_LOOKUP: i32 = 1;
    pub const KTIME_NS: i32 = 5;
    pub const CPU: i32 = 8;
    pub const PID_TGID: i32 = 14;
    pub const COMM: i32 = 16;
    pub const RESERVE: i32 = 131;
    pub const SUBMIT: i32 = 132;
}

/// One instruction, in the format of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    pub(super) code: u8,
    registers: u8,
    pub(super) offset: i16,
    value: i32,
}

/// Parameters of a program.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Number of the device, `major << 20 | minor`.
    pub device: u32,
    /// Offset of the device number in the event, bytes.
    pub device_at: usize,
    /// Length of the event, bytes.
    pub bytes: usize,
    /// Index of the event in [`super::super::EVENTS`].
    pub event: usize,
    /// Descriptor of the ring buffer.
    pub ring: i32,
    /// Descriptor of the map that counts lost events.
    pub lost: i32,
}

/// Builds an instruction. `offset` is a byte offset, or a number of instructions to jump over.
pub(super) fn insn(code: u8, to: u8, from: u8, offset: usize, value: i32) -> Insn {
    let registers = match cfg!(target_endian = "little") {
        true => to | from << 4,
        false => to << 4 | from,
    };
    Insn {
        code,
        registers,
        offset: offset as i16,
        value,
    }
}

pub(super) const LOAD_MAP: u8 = 0x18;
pub(super) const LOAD_32: u8 = 0x61;
pub(super) const LOAD_64: u8 = 0x79;
const LOAD_16: u8 = 0x69;
pub(super) const LOAD_8: u8 = 0x71;
pub(super) const STORE_32: u8 = 0x63;
pub(super) const STORE_64: u8 = 0x7b;
const STORE_16: u8 = 0x6b;
const STORE_8: u8 = 0x73;
pub(super) const STORE_32_VALUE: u8 = 0x62;
pub(super) const ADD_VALUE: u8 = 0x07;
pub(super) const ATOMIC_ADD_64: u8 = 0xdb;
pub(super) const MOVE: u8 = 0xbf;
pub(super) const MOVE_VALUE: u8 = 0xb7;
pub(super) const JUMP_IF_32_NOT: u8 = 0x56;
pub(super) const JUMP_IF: u8 = 0x15;
pub(super) const CALL: u8 = 0x85;
pub(super) const EXIT: u8 = 0x95;

/// Returns the length of a record in the ring buffer, bytes. `bytes` is the length of the event.
pub fn record_bytes(bytes: usize) -> usize {
    HEAD + (bytes.saturating_sub(FROM)).next_multiple_of(8)
}

/// Returns the opcodes for load and store, and the length of the largest aligned unit at `at` that
/// does not reach beyond `end`.
fn widest(at: usize, end: usize) -> (u8, u8, usize) {
    let all = [
        (LOAD_64, STORE_64, 8),
        (LOAD_32, STORE_32, 4),
        (LOAD_16, STORE_16, 2),
    ];
    let fits = |p: &&(u8, u8, usize)| at.is_multiple_of(p.2) && at + p.2 <= end;
    *all.iter().find(fits).unwrap_or(&(LOAD_8, STORE_8, 1))
}

/// Loads the address of a map into a register.
pub(super) fn map(to: u8, descriptor: i32) -> [Insn; 2] {
    // The second instruction contains the upper half of 64-bit values. A descriptor has no upper
    // half.
    [insn(LOAD_MAP, to, 1, 0, descriptor), insn(0, 0, 0, 0, 0)]
}

/// Generates the program.
pub fn program(w: &Wanted) -> Vec<Insn> {
    let call = |number| insn(CALL, 0, 0, 0, number);
    let record = record_bytes(w.bytes);
    // The instructions after the test of the device.
    let mut taken = Vec::new();
    taken.extend(map(1, w.ring));
    taken.extend([
        insn(MOVE_VALUE, 2, 0, 0, record as i32),
        insn(MOVE_VALUE, 3, 0, 0, 0),
        call(helper::RESERVE),
    ]);
    let mut kept = vec![
        insn(MOVE, 7, 0, 0, 0),
        call(helper::KTIME_NS),
        insn(STORE_64, 7, 0, 0, 0),
        call(helper::PID_TGID),
        insn(STORE_64, 7, 0, 8, 0),
        call(helper::CPU),
        insn(STORE_32, 7, 0, 16, 0),
        insn(STORE_32_VALUE, 7, 0, 20, w.event as i32),
        insn(MOVE, 1, 7, 0, 0),
        insn(ADD_VALUE, 1, 0, 0, 24),
        insn(MOVE_VALUE, 2, 0, 0, 16),
        call(helper::COMM),
    ];
    // The copy ends with the last field, because the kernel rejects a program that reads beyond the
    // event.
    let mut at = FROM;
    while at < w.bytes {
        let (load, store, size) = widest(at, w.bytes);
        kept.push(insn(load, 2, 6, at, 0));
        kept.push(insn(store, 7, 2, HEAD - FROM + at, 0));
        at += size;
    }
    // The reader polls the buffer, so it need not be woken up.
    const NO_WAKEUP: i32 = 1;
    kept.extend([
        insn(MOVE, 1, 7, 0, 0),
        insn(MOVE_VALUE, 2, 0, 0, NO_WAKEUP),
        call(helper::SUBMIT),
        insn(MOVE_VALUE, 0, 0, 0, 0),
        insn(EXIT, 0, 0, 0, 0),
    ]);
    let mut lost = vec![
        insn(STORE_32_VALUE, 10, 0, (-4i16) as usize, 0),
        insn(MOVE, 2, 10, 0, 0),
        insn(ADD_VALUE, 2, 0, 0, -4),
    ];
    lost.extend(map(1, w.lost));
    lost.extend([
        call(helper::MAP_LOOKUP),
        insn(JUMP_IF, 0, 0, 2, 0),
        insn(MOVE_VALUE, 1, 0, 0, 1),
        insn(ATOMIC_ADD_64, 0, 1, 0, 0),
    ]);
    let mut all = vec![
        insn(MOVE, 6, 1, 0, 0),
        insn(LOAD_32, 2, 6, w.device_at, 0),
        // Jumps to the end if the event is for another device.
        insn(
            JUMP_IF_32_NOT,
            2,
            0,
            taken.len() + 1 + kept.len() + lost.len(),
            w.device.cast_signed(),
        ),
    ];
    all.extend(taken);
    all.push(insn(JUMP_IF, 0, 0, kept.len(), 0));
    all.extend(kept);
    all.extend(lost);
    all.push(insn(MOVE_VALUE, 0, 0, 0, 0));
    all.push(insn(EXIT, 0, 0, 0, 0));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every jump leads to an instruction of the program, and the last instruction is the exit.
    #[test]
    fn bpf_jumps_stay_inside_the_program() {
        for bytes in [54, 55, 56, 60, 64] {
            let all = program(&Wanted {
                device: 7 << 20,
                device_at: 8,
                bytes,
                event: 3,
                ring: 5,
                lost: 6,
            });
            let last = all.len() - 1;
            assert_eq!(all[last].code, EXIT);
            for (i, insn) in all.iter().enumerate() {
                if [JUMP_IF, JUMP_IF_32_NOT].contains(&insn.code) {
                    let to = i + 1 + insn.offset as usize;
                    assert!(to < last, "{i} to {to} of {last}");
                    // A jump never leads to the second half of an instruction pair.
                    assert!(all[to - 1].code != LOAD_MAP, "{i} to {to}");
                }
            }
            assert_eq!(record_bytes(bytes) % 8, 0);
            // Every byte is read exactly once, and no byte is read after the last.
            let sizes = [(LOAD_64, 8), (LOAD_16, 2), (LOAD_8, 1), (LOAD_32, 4)];
            let read = all[3..].iter().filter_map(|i| {
                let size = sizes.iter().find(|s| s.0 == i.code)?.1;
                Some((i.offset as usize, size))
            });
            let mut at = FROM;
            for (from, size) in read {
                assert_eq!((from, from % size), (at, 0));
                at += size;
            }
            assert_eq!(at, bytes);
        }
    }
}
