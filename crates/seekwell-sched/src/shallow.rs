//! Shallow tag depths. A shallow depth is the part of a tag bitmap that an allocation may use.
//!
//! blk-mq keeps tags in a bitmap that is divided into words. A *shallow depth* limits an allocation
//! to the first part of each word. Up to 6.11 the limit is a number of bits of *each word*. In
//! later kernels it is a number of bits of the whole map, which is divided among the words.
//! Seekwell's layer only counts tags (see the documentation of the layer). These functions compute
//! the counts that follow from the bitmaps.

/// Returns the number of bits of a word, as a power of two: 64 bits, halved while the map would
/// have fewer than four words.
pub const fn word_shift(depth: u32) -> u32 {
    let mut shift = 6;
    if depth >= 4 {
        while (4 << shift) > depth {
            shift -= 1;
        }
    }
    shift
}

/// Returns the number of bits in each word of a map of `depth` tags.
pub fn words(depth: u32) -> impl Iterator<Item = u32> {
    let size = 1u32 << word_shift(depth);
    (0..depth.div_ceil(size)).map(move |i| (depth - i * size).min(size))
}

/// Returns the number of tags that a limit of `per_word` bits per word allows (6.1).
pub fn opened_by_word_limit(depth: u32, per_word: u32) -> u32 {
    words(depth).map(|bits| bits.min(per_word)).sum()
}

/// Converts a limit of `limit` out of `depth` tags to bits of a word, rounded up (6.1).
pub fn to_word_depth(depth: u32, limit: u32) -> u32 {
    let word = 1u64 << word_shift(depth);
    (word * u64::from(limit)).div_ceil(u64::from(depth.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tag_bitmap_is_divided_into_the_kernels_words() {
        assert_eq!(words(64).collect::<Vec<_>>(), [16; 4]);
        assert_eq!(words(128).collect::<Vec<_>>(), [32; 4]);
        assert_eq!(words(256).collect::<Vec<_>>(), [64; 4]);
        assert_eq!(words(62).collect::<Vec<_>>(), [8, 8, 8, 8, 8, 8, 8, 6]);
        assert_eq!(words(4).collect::<Vec<_>>(), [1; 4]);
        assert_eq!(words(3).collect::<Vec<_>>(), [3]);
    }

    proptest! {
        #[test]
        fn a_word_limit_allows_the_depth(depth in 1u32..2049, shallow in 0u32..2100) {
            prop_assert!(opened_by_word_limit(depth, to_word_depth(depth, shallow)) >= shallow.min(depth));
        }
    }
}
