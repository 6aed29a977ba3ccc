//! Named random streams. Every component draws from its own stream, so that an additional draw in
//! one component does not change the numbers of another.

use rand::SeedableRng;
pub use rand_pcg::Pcg64Mcg;

/// Returns the random stream `name` of a run with this seed. The same seed and name give the same
/// numbers on every platform.
pub fn stream(seed: u64, name: &str) -> Pcg64Mcg {
    // FNV-1a over the name, then two rounds of SplitMix64 to spread seed and name over 128 bits.
    let mut h = 0xcbf2_9ce4_8422_2325u64;
    for b in name.bytes() {
        h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let lo = split_mix(seed ^ h);
    let hi = split_mix(lo ^ h.rotate_left(32));
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&lo.to_le_bytes());
    bytes[8..].copy_from_slice(&hi.to_le_bytes());
    Pcg64Mcg::from_seed(bytes)
}

fn split_mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngCore;

    #[test]
    fn random_streams_are_stable_and_differ_by_name_and_seed() {
        let first = |s, n| stream(s, n).next_u64();
        assert_eq!(first(1, "hdd0"), first(1, "hdd0"));
        assert_ne!(first(1, "hdd0"), first(1, "hdd1"));
        assert_ne!(first(1, "hdd0"), first(2, "hdd0"));
    }
}
