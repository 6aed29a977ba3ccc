//! The choice of the group for a new directory, by the Orlov rules of ext3 and ext4.
//!
//! Directories in the root are spread over the disk. The search starts at a group that depends on a
//! hash of the name and on the file system's random seed. It considers the (flex) groups that have
//! at least the average number of free inodes and free blocks. It takes the one with the fewest
//! directories. The location of a program's files on the disk is therefore random.
//! [`crate::Config::seed`] determines this location, unless [`crate::Config::first_placement`]
//! selects the first (flex) group with space.
//!
//! Other directories stay in the (flex) group of their parent. They go to the next group if that
//! group has a quarter more inodes or blocks in use than the average, or too many directories.
//! Files are placed with their directory. Not modelled: the debt of ext3, and the group of the
//! parent's most recent directory.

use super::Alloc;
use crate::fs::GROUP;

struct Stats {
    dirs: u64,
    free_inodes: u64,
    free: u64,
}

impl Alloc {
    fn stats(&self, flex: u32) -> Stats {
        let first = flex * self.flex;
        let members = first..(first + self.flex).min(self.groups.len() as u32);
        let zero = Stats {
            dirs: 0,
            free_inodes: 0,
            free: 0,
        };
        members.fold(zero, |s, g| {
            let g = &self.groups[g as usize];
            Stats {
                dirs: s.dirs + u64::from(g.dirs),
                free_inodes: s.free_inodes + u64::from(g.free_inodes),
                free: s.free + u64::from(g.free),
            }
        })
    }
    /// Returns the group of a new inode. `top`: the inode is in the root directory.
    pub(crate) fn inode_group(&self, dir: bool, parent_group: u32, top: bool, name: &str) -> u32 {
        if !dir {
            return parent_group;
        }
        let flexes = (self.groups.len() as u32).div_ceil(self.flex);
        let average = Stats {
            dirs: self.dirs / u64::from(flexes),
            free_inodes: self.free_inodes / u64::from(flexes),
            free: self.free / u64::from(flexes),
        };
        let found = if top {
            let drawn = self.hash_seed.map(|seed| hash(seed, name));
            let start = drawn.map_or(0, |h| (h % u64::from(flexes)) as u32);
            let all = (0..flexes).map(|i| (start + i) % flexes);
            let good = all.map(|f| (f, self.stats(f))).filter(|(_, s)| {
                s.free_inodes > 0 && s.free_inodes >= average.free_inodes && s.free >= average.free
            });
            good.min_by_key(|(_, s)| s.dirs).map(|(f, _)| f)
        } else {
            let (inodes, blocks) = (
                u64::from(self.flex * self.inodes),
                u64::from(self.flex) * u64::from(GROUP),
            );
            let start = parent_group / self.flex;
            (0..flexes).map(|i| (start + i) % flexes).find(|f| {
                let s = self.stats(*f);
                s.free_inodes > 0
                    && s.dirs < average.dirs + inodes / 16
                    && s.free_inodes >= average.free_inodes.saturating_sub(inodes / 4)
                    && s.free >= average.free.saturating_sub(blocks / 4)
            })
        };
        match found {
            // The directory stays with its parent, in the same group.
            Some(f) if f == parent_group / self.flex && !top => parent_group,
            Some(f) => f * self.flex,
            None => parent_group,
        }
    }
}

fn hash(seed: u64, name: &str) -> u64 {
    let h = name.bytes().fold(seed, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // Mix the bits, so that adjacent seeds give different places.
    let h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    h ^ (h >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use seekwell_core::Era;

    fn alloc(seed: u64, groups: u32) -> Alloc {
        let mut c = Config::new(Era::K3_4);
        c.seed = seed;
        Alloc::new(&c, groups * GROUP)
    }

    #[test]
    fn directories_in_the_root_are_spread_over_flex_groups() {
        // A disk of 100 GB has 46 whole flex groups and one of 9 groups. The journal is in flex
        // group 23.
        let mut places = [0; 47];
        for seed in 0..400 {
            let mut a = alloc(seed, 46 * 16 + 9);
            let g = a.inode_group(true, 0, true, "home");
            places[(g / 16) as usize] += 1;
            a.inode(g, true);
            let other = a.inode_group(true, 0, true, "srv");
            assert_ne!(g / 16, other / 16, "the next where there are fewer");
        }
        println!("seeds that put /home into each flex group: {places:?}");
        // No directory goes to the flex group of the root, to that of the journal, or to the short
        // one.
        assert_eq!([places[0], places[23], places[46]], [0, 0, 0]);
        let (low, high): (u32, u32) = (places[..23].iter().sum(), places[24..].iter().sum());
        assert!(
            low.abs_diff(high) < 60,
            "{low} below the journal, {high} above"
        );
        assert!(places.iter().filter(|n| **n > 0).count() > 40);
    }

    #[test]
    fn first_placement_puts_root_directories_behind_the_root_group_for_any_seed() {
        for seed in 0..20 {
            let mut c = Config::new(Era::K3_4);
            (c.seed, c.first_placement) = (seed, true);
            let mut a = Alloc::new(&c, (46 * 16 + 9) * GROUP);
            let mut places = Vec::new();
            for name in ["home", "srv", "var"] {
                let g = a.inode_group(true, 0, true, name);
                a.inode(g, true);
                places.push(g / 16);
            }
            assert_eq!(places, [1, 2, 3]);
        }
    }

    #[test]
    fn subdirectories_stay_with_their_parent_until_a_quarter_is_used() {
        let mut a = alloc(1, 6 * 16);
        assert_eq!(a.inode_group(true, 37, false, "sub"), 37);
        // The flex group has 16 groups of 8192 inodes, of which a quarter is 32,768. The average
        // includes this flex group, one of six, so more inodes than that must be used.
        let mut taken = 0;
        while a.inode_group(true, 32, false, "sub") == 32 {
            a.inode(32, false);
            taken += 1;
        }
        assert_eq!(a.inode_group(true, 32, false, "sub"), 48);
        println!("inodes taken before directories go on to the next flex group: {taken}");
        assert!((32_768..=32_768 * 6 / 5 + 16).contains(&taken));
    }
}
