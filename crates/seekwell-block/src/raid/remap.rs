//! Remapping of chunks: dm-thin, snapshots and qcow2.
//!
//! Chunks are allocated in the order of their first writes. With age, neighbouring chunks are
//! therefore separated. The model is a random permutation. Each chunk is displaced with a given
//! probability, and the displaced chunks exchange their places. The permutation is computed and not
//! stored. For this, a keyed permutation of all chunks is applied repeatedly until it reaches a
//! displaced chunk. The result is a permutation of the displaced chunks.
//!
//! The tables of the mapping have a small cache (qcow2). On a miss, a table is read from the end of
//! the device, in the io context of the submitter. Not modelled: allocation, sharing, and copy on
//! write.

use super::array::{Array, Io, JoinId, Level};
use seekwell_core::rng;
use seekwell_core::{Bio, BioSink, Flags, Op, Sector, Sectors};
use seekwell_device::ParamError;

use rand::RngCore;

/// Options of the remapping.
#[derive(Clone, Copy, Debug)]
pub struct RemapOptions {
    /// Sectors of a chunk.
    pub chunk: u64,
    /// Probability that a chunk is displaced.
    pub aged: f64,
    /// Number of chunks in one table of the mapping. 0: the tables are in memory.
    pub covers: u64,
    /// Number of cached tables.
    pub tables: usize,
    /// Seed of the permutation.
    pub seed: u64,
}

/// A bio that waits for a table.
#[derive(Clone, Copy)]
struct Waiting {
    bio: Bio,
    join: JoinId,
    table: u64,
}

/// The level: the permutation and the cached tables.
pub struct Remap {
    options: RemapOptions,
    chunks: u64,
    /// A chunk is displaced if its hash is below this value.
    threshold: u64,
    keys: [u64; 4],
    half_bits: u32,
    /// Cached tables. The most recently used table is at the end.
    cached: Vec<u64>,
    loading: Vec<u64>,
    waiting: Vec<Waiting>,
    size: u64,
    /// Number of table reads so far.
    pub misses: u64,
}

/// An array with one member whose chunks are remapped.
pub type Remapped<B> = Array<B, Remap>;

fn mix(x: u64, key: u64) -> u64 {
    let mut z = (x ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 29)
}

impl<B: BioSink> Remapped<B> {
    /// Creates the array from one member.
    pub fn new(member: B, options: RemapOptions) -> Result<Self, ParamError> {
        if options.chunk < 8 || !options.chunk.is_power_of_two() {
            return Err(ParamError::new(
                "chunk",
                format!(
                    "a chunk must be a power of two of at least 4 KiB, not {} bytes",
                    options.chunk * 512
                ),
                "use, for example, chunk=64KiB",
            ));
        }
        let all = member.capacity().0 / options.chunk;
        // A table is as large as a chunk.
        let tables = match options.covers {
            0 => 0,
            c => all.div_ceil(c + 1),
        };
        let chunks = all - tables;
        if chunks == 0 {
            return Err(ParamError::new(
                "chunk",
                format!("the device holds no chunk of {} sectors", options.chunk),
                "use a smaller chunk",
            ));
        }
        let mut rng = rng::stream(options.seed, "remap");
        let keys = [0; 4].map(|_: u64| rng.next_u64());
        let aged = options.aged.clamp(0.0, 1.0);
        let bits = 64 - (chunks - 1).leading_zeros();
        let level = Remap {
            options,
            chunks,
            threshold: if aged >= 1.0 {
                u64::MAX
            } else {
                (aged * 18_446_744_073_709_551_616.0) as u64
            },
            keys,
            half_bits: bits.div_ceil(2).max(1),
            cached: Vec::with_capacity(options.tables),
            loading: Vec::new(),
            waiting: Vec::new(),
            size: chunks * options.chunk,
            misses: 0,
        };
        Ok(Array::with_level(vec![member], level))
    }
}

impl Remap {
    fn displaced(&self, chunk: u64) -> bool {
        self.threshold == u64::MAX || mix(chunk, self.keys[3]) < self.threshold
    }
    /// Applies a permutation of all chunks: three Feistel rounds, repeated until the result is a
    /// valid chunk.
    fn shuffle(&self, chunk: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = chunk;
        loop {
            let (mut l, mut r) = (x >> self.half_bits, x & mask);
            for k in &self.keys[..3] {
                (l, r) = (r, l ^ (mix(r, *k) & mask));
            }
            x = (l << self.half_bits) | r;
            if x < self.chunks {
                return x;
            }
        }
    }
    /// Returns the position of a chunk on the member, in chunks.
    pub fn place(&self, chunk: u64) -> u64 {
        if !self.displaced(chunk) {
            return chunk;
        }
        let mut x = self.shuffle(chunk);
        while !self.displaced(x) {
            x = self.shuffle(x);
        }
        x
    }
    /// Returns whether the table is in the cache. Counts as a use of the table.
    fn cached(&mut self, table: u64) -> bool {
        match self.cached.iter().position(|c| *c == table) {
            Some(i) => self.cached[i..].rotate_left(1),
            None => return self.options.covers == 0,
        }
        true
    }
    fn load<B: BioSink>(&mut self, io: &mut Io<B>, asker: &Bio, table: u64) {
        if self.loading.contains(&table) {
            return;
        }
        self.loading.push(table);
        self.misses += 1;
        let read = Bio {
            op: Op::Read,
            flags: Flags::META,
            sector: Sector((self.chunks + table) * self.options.chunk),
            sectors: Sectors(self.options.chunk as u32),
            ..*asker
        };
        io.own(table, 0, read);
    }
    fn transfer<B: BioSink>(&mut self, io: &mut Io<B>, bio: Bio, join: JoinId) {
        let (mut at, end, chunk) = (bio.sector.0, bio.end().0, self.options.chunk);
        // Chunks that are neighbours after the remapping are sent in one bio.
        let (mut from, mut len) = (0, 0);
        while at < end {
            let n = (chunk - at % chunk).min(end - at);
            let there = self.place(at / chunk) * chunk + at % chunk;
            if len > 0 && there == from + len {
                len += n;
            } else {
                if len > 0 {
                    io.send(join, &bio, 0, from, len as u32);
                }
                (from, len) = (there, n);
            }
            at += n;
        }
        io.send(join, &bio, 0, from, len as u32);
    }
}

impl Level for Remap {
    fn data<B: BioSink>(&mut self, io: &mut Io<B>, bio: Bio, join: JoinId) {
        let per = match self.options.covers {
            0 => self.size,
            c => c * self.options.chunk,
        };
        let (mut at, end) = (bio.sector.0, bio.end().0);
        while at < end {
            let n = (per - at % per).min(end - at);
            let (sector, sectors) = (Sector(at), Sectors(n as u32));
            let part = Bio {
                sector,
                sectors,
                ..bio
            };
            let table = at / per;
            if self.cached(table) {
                self.transfer(io, part, join);
            } else {
                io.hold(join);
                self.waiting.push(Waiting {
                    bio: part,
                    join,
                    table,
                });
                self.load(io, &bio, table);
            }
            at += n;
        }
    }
    fn done<B: BioSink>(&mut self, io: &mut Io<B>, table: u64, error: bool) {
        self.loading.retain(|t| *t != table);
        if self.cached.len() >= self.options.tables.max(1) {
            self.cached.remove(0);
        }
        self.cached.push(table);
        let (mine, rest): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(|w| w.table == table);
        self.waiting = rest;
        for w in mine {
            if !error {
                self.transfer(io, w.bio, w.join);
            }
            io.release(w.join, error);
        }
    }
    fn size(&self) -> Sector {
        Sector(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remap(chunks: u64, aged: f64) -> Remap {
        let dev = crate::raid::testing::Null(Sector(chunks * 128));
        let options = RemapOptions {
            chunk: 128,
            aged,
            covers: 0,
            tables: 0,
            seed: 7,
        };
        Remapped::new(dev, options).unwrap().into_level()
    }

    #[test]
    fn remapping_is_a_permutation_at_every_age() {
        for chunks in [1, 2, 5, 64, 1000, 4097] {
            for aged in [0.0, 0.01, 0.5, 1.0] {
                let r = remap(chunks, aged);
                let mut seen = vec![false; chunks as usize];
                let mut moved = 0;
                for c in 0..chunks {
                    let p = r.place(c);
                    assert!(
                        !std::mem::replace(&mut seen[p as usize], true),
                        "{c} -> {p}"
                    );
                    moved += u64::from(p != c);
                }
                if chunks >= 1000 {
                    let share = moved as f64 / chunks as f64;
                    assert!((share - aged).abs() < 0.06, "aged {aged}: {share} moved");
                }
                assert!(aged > 0.0 || moved == 0);
            }
        }
    }
}
