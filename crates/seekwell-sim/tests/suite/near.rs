//! Bios that merge: among a few hundred random positions, two are hardly ever adjacent.

use seekwell_core::{Flags, Op};

/// The last bio: operation, flags, first sector, first sector after it.
pub type Last = (Op, Flags, u64, u64);

/// A bio of `n` sectors. In two of four cases (`near`), the bio has the kind of the last bio and is
/// adjacent to it: it ends where the last bio began, or begins where the last bio ended. So the two
/// merge.
pub fn next_to(last: Last, near: u8, bio: (Op, Flags, u64), n: u64) -> (Op, Flags, u64) {
    let (op, flags, first, end) = last;
    let data = |op| matches!(op, Op::Read | Op::Write);
    match near {
        0 if data(op) && data(bio.0) && first >= n => (op, flags, first - n),
        1 if data(op) && data(bio.0) => (op, flags, end),
        _ => bio,
    }
}
