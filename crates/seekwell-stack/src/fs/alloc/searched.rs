//! Tests that the memory of failed searches changes no result.

use super::*;
use proptest::prelude::*;
use seekwell_core::Era;

proptest! {
    /// Compares the allocator with one that forgets before each search, on randomly filled groups.
    #[test]
    fn remembered_failed_searches_change_no_result(
        ops in proptest::collection::vec((any::<bool>(), 0u32..2 * GROUP, 1u32..80), 1..120),
    ) {
        let new = || Alloc::new(&Config::new(Era::K3_4), 2 * GROUP);
        let (mut a, mut plain) = (new(), new());
        // Fill the groups completely with runs of many lengths, then free some runs.
        let mut taken: Vec<(u32, u32)> = Vec::new();
        while let Some(piece) = a.run(0, 1 + taken.len() as u32 * 7 % 60) {
            plain.mark(piece.0, piece.1, true);
            taken.push(piece);
        }
        for k in 0..40 {
            let (start, n) = taken.swap_remove(k * 31 % taken.len());
            a.mark(start, n, false);
            plain.mark(start, n, false);
        }
        for (free, goal, want) in ops {
            if free && !taken.is_empty() {
                let (start, n) = taken.swap_remove(goal as usize % taken.len());
                a.mark(start, n, false);
                plain.mark(start, n, false);
                continue;
            }
            for bits in plain.groups.iter_mut().filter_map(|g| g.bits.as_mut()) {
                bits.forget();
            }
            let got = a.run(goal, want);
            prop_assert_eq!(got, plain.run(goal, want));
            taken.extend(got);
        }
    }
}
