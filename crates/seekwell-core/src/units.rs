//! Addresses and lengths in 512-byte sectors. They are different types.

use std::fmt;
use std::ops::Add;

/// Bytes in a sector. The unit is the same for all devices (the kernel's unit) and does not depend
/// on the physical sector size.
pub const SECTOR_BYTES: u64 = 512;

/// An address: the number of 512-byte sectors from the start of the device.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sector(pub u64);

/// A length in 512-byte sectors.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sectors(pub u32);

impl Sector {
    /// Returns the distance between two addresses, in sectors, without sign.
    pub const fn distance(self, o: Sector) -> u64 {
        self.0.abs_diff(o.0)
    }
}
impl Sectors {
    /// Returns the length in bytes.
    pub const fn bytes(self) -> u64 {
        self.0 as u64 * SECTOR_BYTES
    }
}
impl Add<Sectors> for Sector {
    type Output = Sector;
    fn add(self, n: Sectors) -> Sector {
        Sector(self.0 + n.0 as u64)
    }
}
impl Add for Sectors {
    type Output = Sectors;
    fn add(self, n: Sectors) -> Sectors {
        Sectors(self.0 + n.0)
    }
}
impl fmt::Display for Sector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
