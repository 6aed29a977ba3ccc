//! Tests whether the ranks of the schedulers follow the order of the columns in a publication. Most
//! publications ran all tests of one scheduler, then all tests of the next scheduler. If a drive
//! ages or a file system fills up meanwhile, the schedulers rank in that order.

use super::Analysis;

/// How often the treatments of a machine rank in the order in which they are listed.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnOrder {
    /// Name of the machine, or of the device if no machine is given.
    pub place: String,
    /// Indices of the treatments, in the listed order.
    pub treatments: Vec<usize>,
    /// Number of cells in which all treatments have values, and no two values are equal.
    pub cells: u32,
    /// Number of cells in which the treatments rank exactly in the listed order, the first
    /// treatment best.
    pub best_first: u32,
    /// Number of cells in which the treatments rank exactly in the reverse order, the last
    /// treatment best.
    pub worst_first: u32,
    /// Expected number of cells with one particular order, if all orders are equally probable.
    pub expected: f64,
    /// p value of the larger of `best_first` and `worst_first`, doubled because the larger of two
    /// counts is tested.
    pub p: f64,
}

/// Returns P(X >= k) of a binomial distribution with `n` trials of probability `p`.
fn binomial_tail(k: u32, n: u32, p: f64) -> f64 {
    let (mut term, mut sum) = (libm::pow(1.0 - p, f64::from(n)), 0.0);
    for i in 0..=n {
        if i >= k {
            sum += term;
        }
        term *= f64::from(n - i) / f64::from(i + 1) * p / (1.0 - p);
    }
    sum.min(1.0)
}

/// Returns one result for each machine and set of treatments. Only sets of 3 to 12 treatments are
/// tested.
pub fn column_order(analysis: &Analysis) -> Vec<ColumnOrder> {
    let mut out: Vec<ColumnOrder> = Vec::new();
    for cell in &analysis.cells {
        let mut sides: Vec<_> = cell.sides.iter().collect();
        sides.sort_by_key(|s| s.treatment);
        let treatments: Vec<usize> = sides.iter().map(|s| s.treatment).collect();
        let sign = cell.better().sign();
        let means: Vec<f64> = sides
            .iter()
            .filter_map(|s| s.mean.map(|m| sign * m))
            .collect();
        let mut sorted = means.clone();
        sorted.sort_by(f64::total_cmp);
        let tied = sorted.windows(2).any(|w| w[0] == w[1]);
        if !(3..=12).contains(&means.len()) || means.len() < sides.len() || tied {
            continue;
        }
        let place = match cell.machine.as_str() {
            "" => &cell.device,
            machine => machine,
        };
        let same = |o: &ColumnOrder| o.place == *place && o.treatments == treatments;
        let at = out.iter().position(same).unwrap_or_else(|| {
            out.push(ColumnOrder {
                place: place.to_owned(),
                treatments: treatments.clone(),
                cells: 0,
                best_first: 0,
                worst_first: 0,
                expected: 0.0,
                p: 1.0,
            });
            out.len() - 1
        });
        out[at].cells += 1;
        out[at].best_first += u32::from(means.windows(2).all(|w| w[0] > w[1]));
        out[at].worst_first += u32::from(means.windows(2).all(|w| w[0] < w[1]));
    }
    for o in &mut out {
        let orders: f64 = (1..=o.treatments.len()).map(|i| i as f64).product();
        o.expected = f64::from(o.cells) / orders;
        let most = o.best_first.max(o.worst_first);
        o.p = (2.0 * binomial_tail(most, o.cells, 1.0 / orders)).min(1.0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_tails_equal_known_values() {
        assert!((binomial_tail(0, 19, 1.0 / 6.0) - 1.0).abs() < 1e-12);
        assert!((binomial_tail(1, 2, 0.5) - 0.75).abs() < 1e-12);
        // Computed by hand: 3 (1/6)^2 (5/6) + (1/6)^3.
        assert!((binomial_tail(2, 3, 1.0 / 6.0) - 16.0 / 216.0).abs() < 1e-12);
    }
}
