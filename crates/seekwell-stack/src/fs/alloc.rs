//! Allocation of blocks and inodes: block groups, pools for small files, contiguous runs for large
//! files, and the reservation windows of ext3.

mod exact;
mod orlov;
#[cfg(test)]
mod searched;

use crate::config::{Config, Fs};
use crate::fs::bits::Bits;
use crate::fs::{GROUP, Inode, Kind};
use rand::Rng;
use seekwell_core::rng::{Pcg64Mcg, stream};

/// Blocks reserved for one inode: a preallocation in ext4, a reservation window in ext3. The blocks
/// count as used in the bitmap. They become free when the last writer closes the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) next: u32,
    pub(crate) left: u32,
    /// Length of the inode's previous window, blocks. ext3 doubles it for the next window.
    size: u32,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// Bitmap of the blocks, made when the group is first used.
    bits: Option<Bits>,
    inodes: Option<Bits>,
    free: u32,
    free_inodes: u32,
    dirs: u32,
    /// Number of metadata blocks at the start of the group.
    start: u32,
    /// The bitmaps of the group are on the disk, so they must be read if they are not in memory.
    on_disk: bool,
    inodes_on_disk: bool,
}

pub(crate) struct Alloc {
    groups: Vec<Group>,
    pub(crate) blocks: u32,
    flex: u32,
    /// Number of inodes per group, and number of blocks of a group's inode table.
    inodes: u32,
    inode_blocks: u32,
    per_block: u32,
    free: u64,
    free_inodes: u64,
    dirs: u64,
    /// Random seed that mke2fs chooses for the placement of directories. `None`: directories go to
    /// the first group with space.
    hash_seed: Option<u64>,
    /// Number of blocks reserved in windows and pools.
    aside: u64,
    /// Number of freed blocks that cannot be reused before the commit of the transaction that freed
    /// them.
    pending: u64,
    /// Pools for small files, one per CPU.
    pools: Vec<Window>,
    pool_blocks: u32,
    /// Closed files of more than this number of blocks get exactly the blocks they need.
    exact_above: u32,
    scan_chunks: u32,
    small: u32,
    max: u32,
    window: (u32, u32),
    /// Contiguous runs of blocks that hold the journal.
    pub(crate) journal: Vec<(u32, u32)>,
    aged: u32,
    rng: Pcg64Mcg,
}

impl Alloc {
    pub(crate) fn new(cfg: &Config, blocks: u32) -> Self {
        let c = &cfg.constants;
        let ext4 = cfg.fs == Fs::Ext4;
        let n = blocks.div_ceil(GROUP).max(1);
        let per_block = 4096 / c.inode_bytes.max(64) as u32;
        let inodes = c.group_inodes.clamp(64, 32_768) as u32;
        let mut a = Alloc {
            groups: vec![Group::default(); n as usize],
            blocks,
            flex: if ext4 { c.flex_groups.max(1) as u32 } else { 1 },
            inodes,
            inode_blocks: inodes / per_block,
            per_block,
            free: 0,
            free_inodes: u64::from(n) * u64::from(inodes),
            dirs: 0,
            hash_seed: (!cfg.first_placement)
                .then(|| stream(cfg.seed, "seed of directories").random()),
            aside: 0,
            pending: 0,
            pools: vec![Window::default(); cfg.cores.max(1) as usize],
            pool_blocks: c.pool_blocks as u32,
            exact_above: match c.closed_exact {
                _ if !ext4 => u32::MAX,
                0 => u32::MAX,
                1 => 0,
                _ => c.small_file_blocks as u32,
            },
            scan_chunks: c.scan_chunks as u32,
            small: if ext4 { c.small_file_blocks as u32 } else { 0 },
            max: c.alloc_blocks.max(1) as u32,
            window: (c.window_first_blocks as u32, c.window_max_blocks as u32),
            journal: Vec::new(),
            aged: cfg.aged_run_blocks,
            rng: stream(cfg.seed, "aged file system"),
        };
        for g in 0..n {
            let len = a.group_len(g);
            // A small disk has fewer inodes, because metadata take at most half of a group.
            let start = a.metadata_end(g).min(len);
            let group = &mut a.groups[g as usize];
            group.start = start;
            group.free = len - start;
            group.free_inodes = inodes;
            // A new ext4 marks unused groups in their descriptors (uninit_bg), so nothing is on the
            // disk.
            group.on_disk = !ext4;
            group.inodes_on_disk = !ext4;
            a.free += u64::from(len - start);
        }
        // Inodes that ext4 reserves. Inode 2 is the root directory.
        a.take_inode(0);
        a.take_inode(0);
        a.groups[0].dirs = 1;
        a.dirs = 1;
        let want = (c.journal_blocks as u32).min(journal_blocks(blocks));
        a.place_journal(want);
        a
    }
    fn place_journal(&mut self, want: u32) {
        let mut g = self.groups.len() as u32 / 2;
        if g + 1 < self.groups.len() as u32 && self.flex > 1 {
            // The journal comes after the metadata of its flex group.
            g = (g / self.flex * self.flex + 1).min(self.groups.len() as u32 - 1);
        }
        // Skip the metadata of the groups that the journal extends over.
        let mut left = want;
        while left > 0 && g < self.groups.len() as u32 {
            let start = self.first_data(g);
            let room = (g * GROUP + self.group_len(g)).saturating_sub(start);
            let n = left.min(room);
            if n > 0 {
                self.journal.push((start, n));
                self.mark(start, n, true);
            }
            left -= n;
            g += 1;
        }
    }
    pub(crate) fn group_of(block: u32) -> u32 {
        block / GROUP
    }
    fn group_len(&self, g: u32) -> u32 {
        GROUP.min(self.blocks - g * GROUP)
    }
    fn flex_first(&self, g: u32) -> u32 {
        g / self.flex * self.flex
    }
    fn flex_members(&self, g: u32) -> u32 {
        self.flex.min(self.groups.len() as u32 - self.flex_first(g))
    }
    /// Returns the first block of a flex group's metadata. In group 0, the superblock and the group
    /// descriptors come before it.
    fn flex_base(&self, g: u32) -> u32 {
        let f = self.flex_first(g);
        let head = if f == 0 {
            1 + self.groups.len() as u32 / 64 + 1
        } else {
            0
        };
        f * GROUP + head
    }
    pub(crate) fn block_bitmap(&self, g: u32) -> u32 {
        self.clamp(self.flex_base(g) + (g - self.flex_first(g)))
    }
    pub(crate) fn inode_bitmap(&self, g: u32) -> u32 {
        self.clamp(self.flex_base(g) + self.flex_members(g) + (g - self.flex_first(g)))
    }
    pub(crate) fn descriptor(&self, g: u32) -> u32 {
        self.clamp(1 + g / 64)
    }
    pub(crate) fn inode_table(&self, g: u32) -> u32 {
        let n = self.flex_members(g);
        self.flex_base(g) + 2 * n + (g - self.flex_first(g)) * self.inode_blocks
    }
    pub(crate) fn inode_block(&self, g: u32, slot: u32) -> u32 {
        self.clamp(self.inode_table(g) + slot / self.per_block)
    }
    fn clamp(&self, b: u32) -> u32 {
        b.min(self.blocks.saturating_sub(1))
    }
    fn metadata_end(&self, g: u32) -> u32 {
        let f = self.flex_first(g);
        let end = self.flex_base(g) + self.flex_members(g) * (2 + self.inode_blocks);
        (end.saturating_sub(g * GROUP)).min(if g == f { GROUP / 2 } else { 0 })
    }
    /// Returns the first data block of a group.
    pub(crate) fn first_data(&self, g: u32) -> u32 {
        g * GROUP + self.groups[g as usize].start
    }
    /// Returns the number of free blocks. It includes blocks that are reserved, and blocks that an
    /// uncommitted transaction freed. Both can be released when they are needed.
    pub(crate) fn available(&self) -> u64 {
        self.free + self.aside + self.pending
    }
    /// Returns whether a group's bitmaps must be read if they are not in memory. Later calls for
    /// this group return true.
    pub(crate) fn bitmaps_on_disk(&mut self, g: u32) -> bool {
        std::mem::replace(&mut self.groups[g as usize].on_disk, true)
    }
    /// Returns the number of blocks at the start of a group's inode table that contain used inodes.
    pub(crate) fn inode_blocks_used(&self, g: u32) -> u32 {
        match &self.groups[g as usize].inodes {
            None => 0,
            Some(_) if self.flex == 1 => self.inode_blocks,
            Some(b) => b.end_of_used().div_ceil(self.per_block),
        }
    }
    /// Returns whether a group's inode bitmap must be read if it is not in memory. Later calls for
    /// this group return true.
    pub(crate) fn inodes_on_disk(&mut self, g: u32) -> bool {
        std::mem::replace(&mut self.groups[g as usize].inodes_on_disk, true)
    }
    /// Returns whether the inode's table block must be read if it is not in memory. A read is
    /// needed if the block contains other used inodes.
    pub(crate) fn inode_on_disk(&self, g: u32, slot: u32) -> bool {
        if self.flex == 1 {
            return true;
        }
        let Some(bits) = &self.groups[g as usize].inodes else {
            return false;
        };
        let first = slot / self.per_block * self.per_block;
        (first..first + self.per_block).any(|s| s != slot && bits.get(s))
    }

    /// Returns the bitmap of a group.
    fn bits(&mut self, g: u32) -> &mut Bits {
        let len = self.group_len(g);
        let group = &mut self.groups[g as usize];
        let meta = group.start;
        group.bits.get_or_insert_with(|| {
            let mut b = Bits::new(len);
            b.set(0, meta, true);
            b
        })
    }
    fn mark(&mut self, start: u32, n: u32, used: bool) {
        let (mut at, end) = (start, start + n);
        while at < end {
            let g = at / GROUP;
            let k = (end - at).min((g + 1) * GROUP - at);
            let changed = self.bits(g).set(at % GROUP, k, used);
            debug_assert_eq!(changed, k, "blocks {at}+{k}, used {used}");
            let group = &mut self.groups[g as usize];
            if used {
                group.free -= changed;
                self.free -= u64::from(changed);
            } else {
                group.free += changed;
                self.free += u64::from(changed);
            }
            at += k;
        }
    }
    /// Takes a free run near `goal`, at most `want` blocks long. If the goal is free and the run
    /// there is long enough, returns this run. Otherwise returns the first long enough run in the
    /// goal's group or a later group. Otherwise returns the longest run of the first group with
    /// free blocks.
    pub(crate) fn run(&mut self, goal: u32, want: u32) -> Option<(u32, u32)> {
        let n = self.groups.len() as u32;
        let goal = if goal < self.blocks { goal } else { 0 };
        let first = goal / GROUP;
        for enough in [true, false] {
            for d in 0..n {
                let g = (first + d) % n;
                let len = self.group_len(g);
                let group = &mut self.groups[g as usize];
                if group.free == 0 || (enough && group.free < want) {
                    continue;
                }
                let from = if d == 0 { goal % GROUP } else { 0 }.max(group.start);
                let found = match &mut group.bits {
                    None => {
                        let from = if from < len { from } else { group.start };
                        (from < len).then(|| (from, len - from))
                    }
                    Some(b) if enough && b.lacks(want) => None,
                    Some(b) => match b.free_run(from, want) {
                        Some(r) if r.1 >= want => Some(r),
                        at_goal => {
                            let found = b.free_run(group.start, want).or(at_goal);
                            if let Some((_, longest)) = found.filter(|f| f.1 < want) {
                                b.none_of(longest + 1);
                            }
                            found
                        }
                    },
                };
                let Some((s, len)) = found else { continue };
                if enough && len < want {
                    continue;
                }
                let (s, len) = (g * GROUP + s, len.min(want));
                self.mark(s, len, true);
                return Some((s, len));
            }
        }
        None
    }
    /// Frees `n` blocks. They cannot be reused before [`Alloc::free_now`].
    pub(crate) fn free_later(&mut self, n: u32) {
        self.pending += u64::from(n);
    }
    /// Makes blocks available that were freed earlier.
    pub(crate) fn free_now(&mut self, start: u32, n: u32) {
        self.pending -= u64::from(n);
        self.mark(start, n, false);
    }
    fn give_back(&mut self, w: Window) {
        if w.left > 0 {
            self.aside -= u64::from(w.left);
            self.mark(w.next, w.left, false);
        }
    }
    /// Frees the window of an inode.
    pub(crate) fn drop_window(&mut self, i: &mut Inode) {
        // Most closed files were only read, so they have no window.
        if i.window != Window::default() {
            self.give_back(i.window);
            i.window = Window::default();
        }
    }
    /// Frees the pools.
    pub(crate) fn drop_pools(&mut self) {
        for i in 0..self.pools.len() {
            let w = std::mem::take(&mut self.pools[i]);
            self.give_back(w);
        }
    }
    /// Returns the block to try first for a page of a file. It is the block after that of the
    /// previous page. If there is none, it is the location for the files of the directory.
    fn goal(&self, i: &Inode, log: u32, colour: u32) -> u32 {
        let before = i.ext[..i.ext.partition_point(|e| e.log <= log)].last();
        if let Some(e) = before {
            return e.phys + (log - e.log).min(e.len + 4096);
        }
        if self.flex >= 4 {
            // Data of regular files start in the second group of the flex group.
            let g = self.flex_first(i.group);
            let g = g + u32::from(i.kind == Kind::File && self.flex_members(g) > 1);
            return self.first_data(g);
        }
        let g = i.group;
        self.first_data(g) + colour % 16 * (GROUP / 16)
    }
    fn take_from(&mut self, w: &mut Window, want: u32) -> (u32, u32) {
        let n = want.min(w.left);
        let s = w.next;
        w.next += n;
        w.left -= n;
        self.aside -= u64::from(n);
        (s, n)
    }
    /// Allocates blocks for `want` pages of a file from page `log` on. Returns the first block and
    /// the number of blocks, or `None` if the disk is full.
    pub(crate) fn for_file(
        &mut self,
        i: &mut Inode,
        log: u32,
        want: u32,
        cpu: u32,
    ) -> Option<(u32, u32)> {
        if self.aged > 0 {
            return self.scattered(want);
        }
        let behind = i.ext.last().map(|e| (e.log + e.len, e.phys + e.len));
        if i.window.left > 0 {
            // A window is used only for pages that continue the file.
            if behind.is_none_or(|b| b == (log, i.window.next)) {
                let mut w = i.window;
                let r = self.take_from(&mut w, want);
                i.window = w;
                return Some(r);
            }
            let size = i.window.size;
            self.drop_window(i);
            i.window.size = size;
        }
        let pages = i.pages_len();
        let whole = log + want >= pages && i.writers == 0;
        if pages > self.exact_above && whole && i.kind == Kind::File {
            let found = self.exact(i, log, want.min(self.max));
            if found.is_some() {
                return found;
            }
        }
        if pages <= self.small && self.pool_blocks > 0 && i.kind == Kind::File {
            return self.pooled(i, log, want, cpu);
        }
        let goal = self.goal(i, log, cpu);
        let ahead = if self.max > 1 {
            normalised(pages).max(want).min(self.max)
        } else {
            let size = i.window.size;
            i.window.size = if size == 0 {
                self.window.0
            } else {
                (size * 2).min(self.window.1)
            };
            i.window.size.max(want.min(self.window.1))
        };
        let ahead = if i.kind == Kind::File { ahead } else { want };
        let (s, len) = self.run(goal, ahead)?;
        let n = len.min(want);
        if len > n {
            self.aside += u64::from(len - n);
            (i.window.next, i.window.left) = (s + n, len - n);
        }
        Some((s, n))
    }
    fn pooled(&mut self, i: &Inode, log: u32, want: u32, cpu: u32) -> Option<(u32, u32)> {
        let k = cpu as usize % self.pools.len();
        let mut w = std::mem::take(&mut self.pools[k]);
        if w.left < want {
            self.give_back(w);
            let goal = self.goal(i, log, cpu);
            let (s, len) = self.run(goal, self.pool_blocks)?;
            self.aside += u64::from(len);
            w = Window {
                next: s,
                left: len,
                size: 0,
            };
        }
        let r = self.take_from(&mut w, want);
        self.pools[k] = w;
        Some(r)
    }
    /// Takes a run at a random place, as on an aged file system, with the configured mean length.
    fn scattered(&mut self, want: u32) -> Option<(u32, u32)> {
        let len = self.rng.random_range(1..=2 * self.aged).min(want);
        let goal = self.rng.random_range(0..self.blocks);
        self.run(goal, len)
    }

    /// Takes an inode in a group, or in the next group with a free inode. Returns the group and the
    /// slot.
    pub(crate) fn inode(&mut self, near: u32, dir: bool) -> Option<(u32, u32)> {
        let n = self.groups.len() as u32;
        let g = (0..n)
            .map(|d| (near + d) % n)
            .find(|g| self.groups[*g as usize].free_inodes > 0)?;
        let slot = self.take_inode(g);
        self.groups[g as usize].dirs += u32::from(dir);
        self.dirs += u64::from(dir);
        Some((g, slot))
    }
    fn take_inode(&mut self, g: u32) -> u32 {
        let (group, inodes) = (&mut self.groups[g as usize], self.inodes);
        let bits = group.inodes.get_or_insert_with(|| Bits::new(inodes));
        let slot = bits.next_free(0);
        bits.set(slot, 1, true);
        group.free_inodes -= 1;
        self.free_inodes -= 1;
        slot
    }
    pub(crate) fn free_inode(&mut self, g: u32, slot: u32, dir: bool) {
        let group = &mut self.groups[g as usize];
        if let Some(bits) = &mut group.inodes
            && bits.set(slot, 1, false) == 1
        {
            group.free_inodes += 1;
            group.dirs -= u32::from(dir);
            self.free_inodes += 1;
            self.dirs -= u64::from(dir);
        }
    }
    /// Recounts the free blocks from the bitmaps, to check the counters.
    #[cfg(test)]
    pub(crate) fn recount(&self) -> (u64, u64) {
        let mut free = 0;
        for (g, group) in self.groups.iter().enumerate() {
            let len = self.group_len(g as u32);
            free += match &group.bits {
                None => u64::from(len - group.start),
                Some(b) => (0..len).filter(|i| !b.get(*i)).count() as u64,
            };
        }
        (free, self.free)
    }
}

/// Returns the size of the journal that mke2fs makes for a file system of this number of blocks
/// (e2fsprogs 1.43.2 and later).
fn journal_blocks(blocks: u32) -> u32 {
    const STEPS: [(u32, u32); 8] = [
        (2048, 64),
        (32_768, 1024),
        (256 << 10, 4096),
        (512 << 10, 8192),
        (4096 << 10, 16_384),
        (8192 << 10, 32_768),
        (16_384 << 10, 65_536),
        (32_768 << 10, 131_072),
    ];
    let step = STEPS.iter().find(|s| blocks < s.0);
    step.map_or(262_144, |s| s.1)
}

/// Returns the number of pages that mballoc requests when a file of this size is extended. It is
/// the size rounded up to a power of two, from 4 to 2048 pages.
fn normalised(pages: u32) -> u32 {
    pages.clamp(4, 2048).next_power_of_two()
}
