//! The number of accesses by time and sector, in a grid. Columns and rows double in size when the
//! trace becomes longer, or the largest sector higher.

use super::data::Heat;

/// Number of columns, and of rows, while the trace is read.
const COLUMNS: usize = 512;
const ROWS: usize = 2048;
/// Maximum number of columns, and of rows, in the result.
const COLUMNS_OUT: usize = 256;
const ROWS_OUT: usize = 96;

/// Numbers of reads and writes in a cell of the grid.
type Count = [u32; 2];

/// Collects the grid.
pub(super) struct HeatSum {
    step_ns: u64,
    row_sectors: u64,
    /// Numbers of accesses, column after column.
    counts: Vec<Count>,
    columns: usize,
    sectors: (u64, u64),
}

impl Default for HeatSum {
    fn default() -> Self {
        HeatSum {
            step_ns: 1 << 10,
            row_sectors: 1,
            counts: vec![[0; 2]; COLUMNS * ROWS],
            columns: 0,
            sectors: (u64::MAX, 0),
        }
    }
}

fn join(a: Count, b: Count) -> Count {
    [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])]
}

/// Combines every `by` columns and every `high` rows into one. The result contains the sums.
fn shrink(counts: &[Count], columns: usize, rows: usize, by: usize, high: usize) -> Vec<Count> {
    let (new_columns, new_rows) = (columns.div_ceil(by), rows.div_ceil(high));
    let mut out = vec![[0; 2]; new_columns * new_rows];
    for c in 0..columns {
        for r in 0..rows {
            let to = &mut out[c / by * new_rows + r / high];
            *to = join(*to, counts[c * rows + r]);
        }
    }
    out
}

impl HeatSum {
    /// Counts an access at this time and sector.
    pub fn add(&mut self, t_ns: u64, sector: u64, read: bool) {
        while t_ns / self.step_ns >= COLUMNS as u64 {
            self.counts = shrink(&self.counts, COLUMNS, ROWS, 2, 1);
            self.counts.resize(COLUMNS * ROWS, [0; 2]);
            self.columns = self.columns.div_ceil(2);
            self.step_ns *= 2;
        }
        while sector / self.row_sectors >= ROWS as u64 {
            let half = shrink(&self.counts, COLUMNS, ROWS, 1, 2);
            self.counts.fill([0; 2]);
            for (to, from) in self.counts.chunks_mut(ROWS).zip(half.chunks(ROWS / 2)) {
                to[..ROWS / 2].copy_from_slice(from);
            }
            self.row_sectors *= 2;
        }
        let column = (t_ns / self.step_ns) as usize;
        let row = (sector / self.row_sectors) as usize;
        let to = &mut self.counts[column * ROWS + row][usize::from(!read)];
        *to = to.saturating_add(1);
        self.columns = self.columns.max(column + 1);
        self.sectors = (self.sectors.0.min(sector), self.sectors.1.max(sector));
    }

    pub fn done(self) -> Heat {
        if self.columns == 0 {
            return Heat::default();
        }
        let (low, high) = self.sectors;
        let (low, high) = (low / self.row_sectors, high / self.row_sectors);
        let used = (high - low + 1) as usize;
        let cut: Vec<Count> = self.counts[..self.columns * ROWS]
            .chunks(ROWS)
            .flat_map(|c| c[low as usize..=high as usize].iter().copied())
            .collect();
        let by = self.columns.div_ceil(COLUMNS_OUT);
        let tall = used.div_ceil(ROWS_OUT);
        let out = shrink(&cut, self.columns, used, by, tall);
        Heat {
            step_ns: self.step_ns * by as u64,
            first_sector: low * self.row_sectors,
            row_sectors: self.row_sectors * tall as u64,
            rows: used.div_ceil(tall),
            columns: self.columns.div_ceil(by),
            reads: out.iter().map(|c| c[0]).collect(),
            writes: out.iter().map(|c| c[1]).collect(),
        }
    }
}
