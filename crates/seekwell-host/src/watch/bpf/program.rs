//! Generates the program of a tracepoint, which copies an event of one device to the ring buffer.
//!
//! The program is generated instruction by instruction, because its offsets come from the running
//! kernel's description of the event. No compiler and no object file is needed. The program returns
//! if the device is another one, and reserves room; without room it counts the event as lost.
//! Otherwise it stores time, thread, CPU and the thread's name, copies the event word by word, and
//! submits the record.

/// Bytes in front of the event's own bytes.
pub const HEAD: usize = 40;
/// Offset of the event's own bytes; programs may not read the bytes before.
pub const FROM: usize = 8;

/// Functions of the kernel, by the numbers of its interface.
mod helper {
    pub const MAP_LOOKUP: i32 = 1;
    pub const KTIME_NS: i32 = 5;
    pub const CPU: i32 = 8;
    pub const PID_TGID: i32 = 14;
    pub const COMM: i32 = 16;
    pub const RESERVE: i32 = 131;
    pub const SUBMIT: i32 = 132;
}

/// One instruction, as the kernel takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// Parameters of a program.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// `major << 20 | minor`.
    pub device: u32,
    /// Offset of the device in the event.
    pub device_at: usize,
    /// Length of the event, bytes.
    pub bytes: usize,
    /// Index of the event in [`super::super::EVENTS`].
    pub event: usize,
    /// The ring buffer.
    pub ring: i32,
    /// The map that counts lost events.
    pub lost: i32,
}

fn insn(code: u8, to: u8, from: u8, offset: usize, value: i32) -> Insn {
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

const LOAD_MAP: u8 = 0x18;
const LOAD_32: u8 = 0x61;
const LOAD_64: u8 = 0x79;
const LOAD_16: u8 = 0x69;
const LOAD_8: u8 = 0x71;
const STORE_32: u8 = 0x63;
const STORE_64: u8 = 0x7b;
const STORE_16: u8 = 0x6b;
const STORE_8: u8 = 0x73;
const STORE_32_VALUE: u8 = 0x62;
const ADD_VALUE: u8 = 0x07;
const ATOMIC_ADD_64: u8 = 0xdb;
const MOVE: u8 = 0xbf;
const MOVE_VALUE: u8 = 0xb7;
const JUMP_IF_32_NOT: u8 = 0x56;
const JUMP_IF: u8 = 0x15;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Length of an event in the ring buffer, bytes.
pub fn record_bytes(bytes: usize) -> usize {
    HEAD + (bytes.saturating_sub(FROM)).next_multiple_of(8)
}

/// Load, store and length of the widest aligned piece from `at` that ends by `end`.
fn widest(at: usize, end: usize) -> (u8, u8, usize) {
    let all = [
        (LOAD_64, STORE_64, 8),
        (LOAD_32, STORE_32, 4),
        (LOAD_16, STORE_16, 2),
    ];
    let fits = |p: &&(u8, u8, usize)| at.is_multiple_of(p.2) && at + p.2 <= end;
    *all.iter().find(fits).unwrap_or(&(LOAD_8, STORE_8, 1))
}

fn map(to: u8, descriptor: i32) -> [Insn; 2] {
    // The second half is for 64-bit values; a descriptor has none.
    [insn(LOAD_MAP, to, 1, 0, descriptor), insn(0, 0, 0, 0, 0)]
}

/// Generates the program.
pub fn program(w: &Wanted) -> Vec<Insn> {
    let call = |number| insn(CALL, 0, 0, 0, number);
    let record = record_bytes(w.bytes);
    // The part after the jump that leaves for other devices.
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
    // The copy ends with the last field: the kernel rejects a program that reads further.
    let mut at = FROM;
    while at < w.bytes {
        let (load, store, size) = widest(at, w.bytes);
        kept.push(insn(load, 2, 6, at, 0));
        kept.push(insn(store, 7, 2, HEAD - FROM + at, 0));
        at += size;
    }
    // The reader polls, so the program wakes nobody.
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
        // Jumps to the end.
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

    /// Every jump lands on an instruction, and the last instruction exits.
    #[test]
    fn jumps_stay_inside() {
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
                    // A jump never lands in the second half of a pair.
                    assert!(all[to - 1].code != LOAD_MAP, "{i} to {to}");
                }
            }
            assert_eq!(record_bytes(bytes) % 8, 0);
            // Every byte is read once, and none after the last.
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
