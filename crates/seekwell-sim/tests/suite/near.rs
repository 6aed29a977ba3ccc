//! Bios that merge: drawn by chance two in a few hundred places hardly ever touch.

use seekwell_core::{Flags, Op};

/// What came last: operation, flags, first sector, first sector behind it.
pub type Last = (Op, Flags, u64, u64);

/// A bio of `n` sectors, or in two of four cases (`near`) one of the last one's kind that ends where
/// that began, or begins where that ended: what merges.
pub fn next_to(last: Last, near: u8, bio: (Op, Flags, u64), n: u64) -> (Op, Flags, u64) {
    let (op, flags, first, end) = last;
    let data = |op| matches!(op, Op::Read | Op::Write);
    match near {
        0 if data(op) && data(bio.0) && first >= n => (op, flags, first - n),
        1 if data(op) && data(bio.0) => (op, flags, end),
        _ => bio,
    }
}
