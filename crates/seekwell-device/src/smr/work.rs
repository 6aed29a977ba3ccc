//! The drive's own work: appending to the persistent cache, writing whole bands, and cleaning. Only
//! one kind of work runs at a time; reads of the host run beside it.

use super::map::Place;
use super::map::whole_blocks;
use super::{Part, Pending, Smr};
use seekwell_core::Op;

/// Size of the pieces in which bands are read and written: 2 MiB, in sectors.
const PIECE: u64 = 4096;
/// Number of pieces in the mechanics at a time. With two, the next piece follows without a gap.
const PIECES: u32 = 2;
/// Size of a map record of a group: 4 KiB, in sectors.
const RECORD: u64 = 8;

/// A range of a group: its address, the number of the write, its log entry and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appended {
    range: (u64, u64),
    write: u64,
    entry: u64,
    at: u64,
}

/// One transfer of a band or of a part of the log, or a flush of the mechanics.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    sector: u64,
    sectors: u64,
    op: Op,
}

/// Makes the pieces before it durable.
const FLUSH: Piece = Piece {
    sector: 0,
    sectors: 0,
    op: Op::Flush,
};

/// What the work on a band is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Writes a whole band in place. The data of writes after this number stay in the buffer.
    Run(u64),
    /// Cleans a band: removes its log entries before this number. `forced`: writes of the host wait
    /// for it.
    Clean { before: u64, forced: bool },
}

#[derive(Debug, Clone)]
pub(super) enum Work {
    None,
    Group {
        ranges: Vec<Appended>,
        hosts: Vec<u32>,
    },
    Band {
        band: (u64, u64),
        purpose: Purpose,
        pieces: Vec<Piece>,
        next: usize,
        in_flight: u32,
        given_up: bool,
    },
}

impl Work {
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Work::None)
    }
    pub(super) fn text(&self) -> &'static str {
        match self {
            Work::None => "no work of its own",
            Work::Group { .. } => "appending to the persistent cache",
            Work::Band {
                purpose: Purpose::Run(_),
                ..
            } => "writing a band in place",
            Work::Band { .. } => "cleaning a band",
        }
    }
}

impl Smr {
    /// Starts everything that can start now.
    pub(super) fn proceed(&mut self) {
        loop {
            while let Some(host) = self.waiting.front().copied() {
                if !self.admit(host) {
                    break;
                }
                self.waiting.pop_front();
            }
            self.next_pieces();
            self.issue();
            if !self.work.is_none() || self.busy_to > self.now || !self.start() {
                return;
            }
        }
    }

    /// Starts the next work. Returns whether anything has changed.
    fn start(&mut self) -> bool {
        let ended = |r: &super::Run, now| now >= r.last + self.p.run_idle;
        let (now, all) = (self.now, self.flush.is_some());
        let idle = |r: &super::Run| r.held.is_some() && (all || ended(r, now));
        if let Some(i) = self.runs.iter().position(idle) {
            self.give_up(i);
            return true;
        }
        // If a command waits for a buffered write, this write is appended before a band is written.
        let urgent = self.pending.front().is_some_and(|p| p.host.is_some());
        if let Some(band) = self.ready.pop_front_if(|_| !urgent) {
            let mut buffered = false;
            let is_buffered = |p| matches!(p, Some(Place::Buffer(_)));
            let see = |_, _, place| buffered |= is_buffered(place);
            self.map.parts(band.0, band.1, see);
            if buffered {
                let mut pieces = vec![];
                cut(self.home(band.0), band.1 - band.0, Op::Write, &mut pieces);
                self.band(band, Purpose::Run(self.writes), pieces);
            }
            return true;
        }
        if !self.pending.is_empty() {
            return self.start_group() || self.start_cleaning(true);
        }
        if !self.waiting.is_empty() {
            // The buffer is full of runs that have not filled a band.
            let held = self.runs.iter().position(|r| r.held.is_some());
            if let Some(i) = held {
                self.give_up(i);
            }
            return held.is_some();
        }
        if self.flush.is_some() {
            if !self.flush_sent && self.map.buffered() == 0 {
                self.flush_sent = true;
                self.send(Part::Flush, Op::Flush, 0, 0, false);
                return true;
            }
            return false;
        }
        let rested = self.now >= self.host_at + self.p.clean_idle;
        rested && self.may_clean() && self.start_cleaning(false)
    }

    /// Returns whether the drive may clean when it is idle.
    pub(super) fn may_clean(&self) -> bool {
        let idle = self.outstanding as usize == self.finished.len();
        idle && self.map.logged() > 0 && self.map.buffered() == 0
    }

    /// Appends data of the buffer to the log. Returns whether there was space.
    fn start_group(&mut self) -> bool {
        let (mut list, mut writes, mut hosts) = (vec![], vec![], vec![]);
        let mut sectors = RECORD;
        let extents = self.p.extents.saturating_sub(self.map.logged());
        while let Some(next) = self.pending.front().copied() {
            let own = whole_blocks((next.from, next.to));
            let first = list.is_empty() && hosts.is_empty();
            let fits = self.map.has_room(sectors + own) && list.len() < extents;
            if !fits || (!first && sectors + own > self.p.group) {
                break;
            }
            self.pending.pop_front();
            let before = list.len();
            self.map
                .still_buffered(next.from, next.to, next.write, &mut list);
            writes.resize(list.len(), next.write);
            sectors += list[before..].iter().map(|r| whole_blocks(*r)).sum::<u64>();
            let replaced = before == list.len();
            match next.host {
                Some(host) if replaced && self.wait_for_newer(host, next) => {}
                host => hosts.extend(host),
            }
        }
        if list.is_empty() {
            // Newer writes have replaced all this data.
            for host in &hosts {
                self.part_done(*host, false);
            }
            return !hosts.is_empty() || self.pending.is_empty();
        }
        let (at, entry) = self.map.append(RECORD, &list);
        let mut place = at + RECORD;
        let ranges = list.iter().zip(writes).zip(entry..);
        let ranges = ranges.map(|((range, write), entry)| {
            let at = place + range.0 % RECORD;
            place += whole_blocks(*range);
            Appended {
                range: *range,
                write,
                entry,
                at,
            }
        });
        self.work = Work::Group {
            ranges: ranges.collect(),
            hosts,
        };
        self.internal_bytes += RECORD * 512;
        self.send(Part::Work, Op::Write, at, sectors, true);
        true
    }

    /// Lets a command wait until the data that have replaced its own are in the log. Returns false
    /// if no such data are in the buffer.
    fn wait_for_newer(&mut self, host: u32, old: Pending) -> bool {
        let mut newer = vec![];
        self.map.parts(old.from, old.to, |from, to, place| {
            if let Some(Place::Buffer(write)) = place {
                newer.push(Pending {
                    from,
                    to,
                    write,
                    host: Some(host),
                });
            }
        });
        let parts = newer.len() as u32;
        self.pending.extend(newer);
        if parts > 0 {
            self.hosts[host as usize].left += parts - 1;
        }
        parts > 0
    }

    /// Starts to clean the band of the oldest data. Returns false if the log is empty.
    fn start_cleaning(&mut self, forced: bool) -> bool {
        let Some(oldest) = self.map.oldest() else {
            return false;
        };
        let band = self.bands.around(oldest);
        let (home, sectors) = (self.home(band.0), band.1 - band.0);
        let mut pieces = vec![];
        cut(home, sectors, Op::Read, &mut pieces);
        let mut parts = vec![];
        self.map.parts(band.0, band.1, |x, y, place| {
            if let Some(Place::Log { at, .. }) = place {
                parts.push((at, y - x));
            }
        });
        parts.sort_unstable();
        for (at, n) in parts {
            cut(at, n, Op::Read, &mut pieces);
        }
        // The data were durable in the log, so they must be durable before the log forgets them.
        if self.p.safe_copy {
            cut(self.p.cache, sectors, Op::Write, &mut pieces);
            pieces.push(FLUSH);
        }
        cut(home, sectors, Op::Write, &mut pieces);
        pieces.push(FLUSH);
        let before = self.map.next_entry();
        self.band(band, Purpose::Clean { before, forced }, pieces);
        true
    }

    fn band(&mut self, band: (u64, u64), purpose: Purpose, pieces: Vec<Piece>) {
        self.work = Work::Band {
            band,
            purpose,
            pieces,
            next: 0,
            in_flight: 0,
            given_up: false,
        };
    }

    /// Sends the next pieces of a band. A piece of another kind waits for the pieces before it.
    fn next_pieces(&mut self) {
        let mut send = vec![];
        let Work::Band {
            purpose,
            pieces,
            next,
            in_flight,
            given_up,
            ..
        } = &mut self.work
        else {
            return;
        };
        while *in_flight < PIECES && !*given_up {
            let Some(piece) = pieces.get(*next) else {
                break;
            };
            let turns = *next > 0 && pieces[*next - 1].op != piece.op;
            if turns && *in_flight > 0 {
                break;
            }
            send.push(*piece);
            (*next, *in_flight) = (*next + 1, *in_flight + 1);
        }
        let own = !matches!(purpose, Purpose::Run(_));
        for p in send {
            if own {
                self.internal_bytes += p.sectors * 512;
            }
            self.send(Part::Work, p.op, p.sector, p.sectors, false);
        }
    }

    /// Gives up cleaning that only reads so far and that nobody waits for.
    pub(super) fn stop_cleaning(&mut self) {
        if let Work::Band {
            purpose: Purpose::Clean { forced: false, .. },
            pieces,
            next,
            given_up,
            in_flight,
            ..
        } = &mut self.work
            && pieces
                .get(next.saturating_sub(1))
                .is_some_and(|p| p.op == Op::Read)
        {
            *given_up = true;
            if *in_flight == 0 {
                self.work = Work::None;
            }
        }
    }

    /// Handles the end of a command of the drive's own work.
    pub(super) fn work_done(&mut self) {
        match std::mem::replace(&mut self.work, Work::None) {
            Work::None => {}
            Work::Group { ranges, hosts } => {
                for r in ranges {
                    self.map.appended(r.range, r.write, r.entry, r.at);
                }
                self.map.close();
                for host in hosts {
                    self.part_done(host, false);
                }
                self.groups += 1;
                if self.groups == self.p.map.0 {
                    self.groups = 0;
                    self.busy_to = self.now + self.p.map.1;
                }
            }
            Work::Band {
                band,
                purpose,
                pieces,
                next,
                in_flight,
                given_up,
            } => {
                let left = in_flight - 1;
                if left > 0 || (next < pieces.len() && !given_up) {
                    self.work = Work::Band {
                        band,
                        purpose,
                        pieces,
                        next,
                        in_flight: left,
                        given_up,
                    };
                } else if !given_up {
                    self.map
                        .remove(band.0, band.1, |place| match (place, purpose) {
                            (Place::Buffer(write), Purpose::Run(last)) => write <= last,
                            (Place::Log { entry, .. }, Purpose::Clean { before, .. }) => {
                                entry < before
                            }
                            _ => false,
                        });
                }
            }
        }
    }
}

/// Appends a transfer to `out`, in pieces.
fn cut(sector: u64, sectors: u64, op: Op, out: &mut Vec<Piece>) {
    let mut at = 0;
    while at < sectors {
        let n = PIECE.min(sectors - at);
        out.push(Piece {
            sector: sector + at,
            sectors: n,
            op,
        });
        at += n;
    }
}
