//! The bands of a shingled disk: their sizes fall linearly from the outer to the inner edge.

/// The first sectors of all bands.
#[derive(Debug, Clone)]
pub struct Bands {
    starts: Vec<u64>,
}

impl Bands {
    /// Divides `capacity` sectors into bands. `sizes` are those of the outermost and the innermost
    /// band, in sectors.
    pub fn new(capacity: u64, sizes: (u64, u64)) -> Self {
        let mut starts = vec![];
        let mut at = 0;
        while at < capacity {
            starts.push(at);
            let inward = at as f64 / capacity as f64;
            let size = sizes.0 as f64 - inward * (sizes.0 - sizes.1) as f64;
            at += (size as u64 / 8 * 8).max(8);
        }
        starts.push(capacity);
        Bands { starts }
    }
    /// Returns the first sector and the end sector of the band that contains `lba`.
    pub fn around(&self, lba: u64) -> (u64, u64) {
        let i = self.starts.partition_point(|s| *s <= lba);
        let end = self.starts.get(i).or(self.starts.last());
        (self.starts[i.max(1) - 1], end.copied().unwrap_or(lba))
    }
    /// Returns the number of bands.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.starts.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_cover_the_drive_and_shrink() {
        let b = Bands::new(15_628_053_168, (81_920, 30_720));
        // 8 TB in bands of 27.5 MiB, as their mean, weighted by the number of bands.
        assert!((280_000..320_000).contains(&b.len()), "{}", b.len());
        assert_eq!(b.around(0), (0, 81_920));
        assert_eq!(b.around(81_919), (0, 81_920));
        assert_eq!(b.around(81_920).0, 81_920);
        let last = b.around(15_628_053_167);
        assert_eq!(last.1, 15_628_053_168);
        assert!(last.1 - last.0 <= 30_728);
    }
}
