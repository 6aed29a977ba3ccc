//! Splits an access to a range of the array into commands for the disks, with copies and parity.

use super::Controller;
use crate::raid::Level;
use seekwell_core::{Command, Op, Sector, Sectors};

/// The cause of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The host's command in this slot.
    Host(u32),
    /// Write-back from the cache; the value is the first sector of its extents.
    Destage(u64),
    /// Read-ahead of the strip with this number.
    Ahead(u64),
}

/// A group of disk commands. The writes start after all reads of the group have completed.
#[derive(Debug)]
pub(super) struct Operation {
    pub owner: Owner,
    pub left: u32,
    pub error: bool,
    pub lazy: bool,
    /// Writes that follow the reads: (disk, first sector, number of sectors).
    pub then: Vec<(usize, u64, u32)>,
}

/// One disk command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub operation: u32,
    pub op: Op,
    pub sector: u64,
    pub sectors: u32,
}

/// A piece of a stripe of parity RAID: index of the data chunk, and start and end of the range in
/// that chunk, in sectors.
type Piece = (usize, u64, u64);

impl Controller {
    pub(super) fn operation(&mut self, owner: Owner, lazy: bool) -> u32 {
        let (left, error) = (1, false);
        match self.free_operations.pop() {
            Some(i) => {
                let o = &mut self.operations[i as usize];
                (o.owner, o.left, o.error, o.lazy) = (owner, left, error, lazy);
                o.then.clear();
                i
            }
            None => {
                let then = Vec::new();
                self.operations.push(Operation {
                    owner,
                    left,
                    error,
                    lazy,
                    then,
                });
                (self.operations.len() - 1) as u32
            }
        }
    }
    /// Queues a command of `operation` for a disk.
    pub(super) fn part(&mut self, operation: u32, disk: usize, op: Op, sector: u64, sectors: u32) {
        self.operations[operation as usize].left += 1;
        let part = Part {
            operation,
            op,
            sector,
            sectors,
        };
        let id = match self.free_parts.pop() {
            Some(i) => {
                self.parts[i as usize] = part;
                i
            }
            None => {
                self.parts.push(part);
                (self.parts.len() - 1) as u32
            }
        };
        let lazy = self.operations[operation as usize].lazy;
        let d = &mut self.disks[disk];
        d.pending += 1;
        d.head = sector + u64::from(sectors);
        match lazy {
            true => d.lazy.push_back(id),
            false => d.urgent.push_back(id),
        }
    }
    /// Returns the disk command with this id.
    pub(super) fn command(&self, id: u32) -> Command {
        let p = self.parts[id as usize];
        Command {
            id,
            op: p.op,
            sector: Sector(p.sector),
            sectors: Sectors(p.sectors),
            fua: false,
        }
    }

    /// Queues the disk reads for the sectors `at..end`.
    pub(super) fn read(&mut self, owner: Owner, mut at: u64, end: u64, lazy: bool) {
        let o = self.operation(owner, lazy);
        while at < end {
            let n = self.layout.rest(at).min(end - at);
            match self.copy_to_read(at) {
                Some((disk, sector)) => self.part(o, disk, Op::Read, sector, n as u32),
                None => self.read_around(o, at, n),
            }
            at += n;
        }
        self.close(o, false);
    }
    /// Returns the disk and sector of the copy to read. The copy is on the disk with the fewest
    /// pending commands; on a tie, on the disk whose head is nearest.
    fn copy_to_read(&self, at: u64) -> Option<(usize, u64)> {
        let all = (0..self.layout.copies()).map(|k| self.layout.copy(at, k));
        let alive = all.filter(|s| !self.disks[s.member].failed);
        let best = alive.min_by_key(|s| {
            let d = &self.disks[s.member];
            (d.pending, s.sector.abs_diff(d.head))
        });
        best.map(|s| (s.member, s.sector))
    }
    /// Queues the reads that reconstruct a piece of a failed disk. They read all other data of the
    /// stripe, and as many parity chunks as there are failed data chunks.
    fn read_around(&mut self, o: u32, at: u64, n: u64) {
        let spot = self.layout.copy(at, 0);
        let row = self.layout.row(spot.sector);
        let (p, q) = self.layout.parity(row);
        let mut lost = 0;
        for i in 0..self.layout.width() as usize {
            let m = self.layout.data_member(row, i);
            if self.disks[m].failed {
                lost += 1;
            } else {
                self.part(o, m, Op::Read, spot.sector, n as u32);
            }
        }
        for m in [Some(p), q].into_iter().flatten() {
            if lost > 0 && !self.disks[m].failed {
                self.part(o, m, Op::Read, spot.sector, n as u32);
                lost -= 1;
            }
        }
    }

    /// Queues the disk writes for extents, which must be ascending and disjoint. The owner is
    /// informed when each operation completes. Returns the number of operations.
    pub(super) fn write(&mut self, owner: Owner, extents: &[(u64, u64)], lazy: bool) -> u32 {
        if matches!(self.layout.level(), Level::Raid5 | Level::Raid6) {
            return self.write_rows(owner, extents, lazy);
        }
        let o = self.operation(owner, lazy);
        for (from, end) in extents.iter().copied() {
            let mut at = from;
            while at < end {
                let n = self.layout.rest(at).min(end - at);
                for k in 0..self.layout.copies() {
                    let s = self.layout.copy(at, k);
                    if !self.disks[s.member].failed {
                        self.part(o, s.member, Op::Write, s.sector, n as u32);
                    }
                }
                at += n;
            }
        }
        self.close(o, false);
        1
    }
    fn write_rows(&mut self, owner: Owner, extents: &[(u64, u64)], lazy: bool) -> u32 {
        let (chunk, width) = (self.layout.chunk(), self.layout.width());
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        let (mut row, mut made) = (u64::MAX, 0);
        for (from, end) in extents.iter().copied() {
            let mut at = from;
            while at < end {
                let n = self.layout.rest(at).min(end - at);
                let q = at / chunk;
                if q / width != row && !pieces.is_empty() {
                    made += 1;
                    self.write_row(owner, row, &pieces, lazy);
                    pieces.clear();
                }
                row = q / width;
                pieces.push(((q % width) as usize, at % chunk, at % chunk + n));
                at += n;
            }
        }
        if !pieces.is_empty() {
            made += 1;
            self.write_row(owner, row, &pieces, lazy);
        }
        self.pieces = pieces;
        made
    }
    /// Writes a part of one stripe, or all of it. A full stripe needs no reads. For a part, the
    /// function uses read-modify-write or reconstruct-write, whichever needs fewer reads
    /// (read-modify-write on a tie). If a disk has failed, perhaps only one of the two methods is
    /// possible.
    fn write_row(&mut self, owner: Owner, row: u64, pieces: &[Piece], lazy: bool) {
        let o = self.operation(owner, lazy);
        let base = row * self.layout.chunk();
        let lo = pieces.iter().map(|p| p.1).min().unwrap_or(0);
        let hi = pieces.iter().map(|p| p.2).max().unwrap_or(0);
        let (p, q) = self.layout.parity(row);
        let covers = |i: usize| pieces.contains(&(i, lo, hi));
        let member = |i: usize| self.layout.data_member(row, i);
        let width = self.layout.width() as usize;
        let parity: Vec<usize> = [Some(p), q]
            .into_iter()
            .flatten()
            .filter(|m| !self.disks[*m].failed)
            .collect();
        let rebuild: Vec<usize> = (0..width).filter(|i| !covers(*i)).map(member).collect();
        let lost_written = pieces.iter().any(|x| self.disks[member(x.0)].failed);
        let lost_kept = rebuild.iter().any(|m| self.disks[*m].failed);
        let modify = pieces.len() + parity.len();
        let all: Vec<Piece> = pieces.to_vec();
        let mut reads: Vec<(usize, u64, u64)> = Vec::new();
        if parity.is_empty() {
            // All parity disks of this stripe have failed, so write only the data.
        } else if lost_written && lost_kept {
            let others = (0..width).map(member).chain(parity.iter().copied());
            reads.extend(
                others
                    .filter(|m| !self.disks[*m].failed)
                    .map(|m| (m, lo, hi)),
            );
        } else if lost_kept || (!lost_written && modify <= rebuild.len()) {
            reads.extend(all.iter().map(|x| (member(x.0), x.1, x.2)));
            reads.extend(parity.iter().map(|m| (*m, lo, hi)));
        } else {
            reads.extend(rebuild.iter().map(|m| (*m, lo, hi)));
        }
        let mut writes: Vec<(usize, u64, u32)> = all
            .iter()
            .map(|x| (member(x.0), base + x.1, (x.2 - x.1) as u32))
            .filter(|w| !self.disks[w.0].failed)
            .collect();
        writes.extend(parity.iter().map(|m| (*m, base + lo, (hi - lo) as u32)));
        for (m, from, to) in &reads {
            self.part(o, *m, Op::Read, base + from, (to - from) as u32);
        }
        if reads.is_empty() {
            for (m, sector, n) in writes {
                self.part(o, m, Op::Write, sector, n);
            }
        } else {
            self.operations[o as usize].then = writes;
        }
        self.close(o, false);
    }

    /// Counts one completed command of an operation, or the end of its list of commands. Starts the
    /// writes after the last read, and informs the owner after the last write.
    pub(super) fn close(&mut self, o: u32, error: bool) {
        let op = &mut self.operations[o as usize];
        op.left -= 1;
        op.error |= error;
        if op.left > 0 {
            return;
        }
        if !op.then.is_empty() && !op.error {
            let then = std::mem::take(&mut op.then);
            op.left = 1;
            for (disk, sector, n) in &then {
                self.part(o, *disk, Op::Write, *sector, *n);
            }
            return self.close(o, false);
        }
        let (owner, error) = (op.owner, op.error);
        self.free_operations.push(o);
        self.closed.push((owner, error));
    }
}
