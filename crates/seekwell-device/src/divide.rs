//! Division by a constant divisor, computed with one multiplication and a correction.

/// A divisor; at least 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Divisor {
    by: u64,
    /// 2^64 / by, rounded down.
    inverse: u64,
}

impl Divisor {
    pub fn new(by: u64) -> Self {
        let by = by.max(1);
        Divisor {
            by,
            inverse: ((1u128 << 64) / u128::from(by)).min(u128::from(u64::MAX)) as u64,
        }
    }
    /// Returns quotient and remainder of `x`.
    #[inline]
    pub fn split(&self, x: u64) -> (u64, u64) {
        // The estimated quotient is never too high, and at most 2 too low.
        let mut q = ((u128::from(x) * u128::from(self.inverse)) >> 64) as u64;
        let mut r = x - q * self.by;
        while r >= self.by {
            q += 1;
            r -= self.by;
        }
        (q, r)
    }
    /// Returns the remainder of `x`.
    #[inline]
    pub fn rest(&self, x: u64) -> u64 {
        self.split(x).1
    }
    /// Returns the quotient of `x`, rounded up.
    #[inline]
    pub fn up(&self, x: u64) -> u64 {
        let (q, r) = self.split(x);
        q + u64::from(r > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The results equal those of the processor's division.
        #[test]
        fn divisor_agrees_with_processor_division(x: u64, by in 1u64.., small in 1u64..3000, shift in 0u32..64) {
            for by in [by, small, by >> shift | 1] {
                for x in [x, x >> shift, u64::MAX, by, by - 1, by.wrapping_mul(7)] {
                    prop_assert_eq!(Divisor::new(by).split(x), (x / by, x % by));
                    prop_assert_eq!(Divisor::new(by).up(x), x.div_ceil(by));
                }
            }
        }
    }
}
