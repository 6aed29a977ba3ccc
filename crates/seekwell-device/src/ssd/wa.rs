//! Write amplification: the number of pages that the flash programs, divided by the number of pages
//! that the host writes.
//!
//! For uniform random writes, greedy cleaning and large blocks, write amplification depends only on
//! the over-provisioning rho. The formula is WA = a / (a + W(-a e^-a)), where a = 1 + rho and W is
//! the principal branch of Lambert's function (Xiang and Kurkoski 2012, after Agarwal and Marrow;
//! Desnoyers' equation has the same fixed point). With small blocks, write amplification is
//! slightly lower, because some blocks have fewer valid pages than the mean.

use libm::{exp, fabs};

/// Returns the write amplification for an over-provisioning `rho` (spare space divided by user
/// space, greater than 0).
pub fn write_amplification(rho: f64) -> f64 {
    let a = 1.0 + rho.max(1e-6);
    // Solves W e^W = -a e^-a with Newton's method. It starts at -0.5, which is between the trivial
    // solution -a and the other solution.
    let y = -a * exp(-a);
    let mut w = -0.5;
    for _ in 0..60 {
        let e = exp(w);
        let step = (w * e - y) / (e * (1.0 + w));
        w -= step;
        // Near -1 the two solutions meet, and a step can go too far.
        w = w.clamp(-1.0 + 1e-12, 0.0);
        if fabs(step) < 1e-13 {
            break;
        }
    }
    (a / (a + w)).max(1.0)
}

/// Returns the fraction of a block's pages that are still valid when the block is cleaned.
pub fn victim_valid(rho: f64) -> f64 {
    1.0 - 1.0 / write_amplification(rho)
}

/// Returns the progress of a drive from the first write (0) to the steady state (1). `beyond` is
/// the number of pages written at random since the never-used space was exhausted. The formula is
/// an approximation: after random writes of 1.5 times the spare space, it gives 78 %.
pub fn ramp(beyond: f64, spare: f64) -> f64 {
    if beyond <= 0.0 {
        0.0
    } else {
        1.0 - exp(-1.5 * beyond / spare.max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values equal the published table of the formula.
    #[test]
    fn write_amplification_equals_the_published_table() {
        for (rho, wa) in [
            (0.07, 7.82),
            (0.074, 7.43),
            (0.10, 5.68),
            (0.15, 4.02),
            (0.20, 3.19),
            (0.28, 2.48),
            (0.30, 2.36),
            (0.37, 2.06),
            (0.50, 1.72),
            (1.0, 1.26),
        ] {
            let got = write_amplification(rho);
            assert!((got - wa).abs() < 0.006, "{rho}: {got} against {wa}");
        }
    }

    #[test]
    fn write_amplification_is_finite_and_decreasing_at_extremes() {
        let mut last = f64::INFINITY;
        for rho in [0.0, 1e-5, 1e-3, 0.01, 0.1, 1.0, 10.0, 1e3, 1e9] {
            let wa = write_amplification(rho);
            assert!(wa.is_finite() && wa >= 1.0 && wa <= last, "{rho}: {wa}");
            last = wa;
        }
        assert_eq!(write_amplification(1e9), 1.0);
    }

    /// The identity behind the steady state. The valid fraction of blocks decays exponentially with
    /// age, from 1 to the fraction of a victim block. The mean of this fraction is the ratio of
    /// user space to physical space.
    #[test]
    fn mean_of_the_valid_fraction_decay_equals_the_stored_data() {
        for rho in [0.07, 0.3, 1.0] {
            let u = victim_valid(rho);
            let mean = (1.0 - u) / -libm::log(u);
            assert!((mean - 1.0 / (1.0 + rho)).abs() < 1e-9, "{rho}: {mean}");
        }
    }
}
