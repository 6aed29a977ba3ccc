//! Data of a process in anticipatory, and statistics in fixed-point arithmetic.
//!
//! A context lives longer than its process, because the disk may wait for a process that has
//! exited, or a request of that process may be in flight. So each context counts its references: by
//! the living process, by its requests, and by the current wait.

use seekwell_core::{IocId, Sector, Side};

/// The value 1.0 of all fixed-point probabilities and sample counters.
pub(super) const ONE: u64 = 256;

/// Returns a decayed average: seven eighths of `old` plus one eighth of `new`.
pub(super) const fn decay(old: u64, new: u64) -> u64 {
    (7 * old + new) / 8
}

/// Index of a [`Context`].
pub(super) type Ctx = u32;

/// Data of one process on this queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    refs: u32,
    /// True while a task uses the context.
    pub alive: bool,
    /// True if a sync request of the process was inserted.
    pub io_started: bool,
    /// True if a sync request of the process has completed.
    pub io_running: bool,
    /// Number of requests in the scheduler.
    pub queued: u32,
    /// Number of requests on the dispatch list that the driver has not taken.
    pub dispatched: u32,
    /// The jiffy of the last sync completion.
    pub last_end_j: u64,
    /// Decaying sum of think times, in jiffies times 256.
    pub tt_total: u64,
    /// Decaying number of think-time samples, times 256; the limit is 249.
    pub tt_samples: u64,
    /// Mean think time, in jiffies.
    pub tt_mean: u64,
    /// Decaying sum of seek distances, in sectors times 256.
    pub seek_total: u64,
    /// Decaying number of seek samples, times 256.
    pub seek_samples: u64,
    /// Mean seek distance, in sectors.
    pub seek_mean: u64,
    /// End sector of the last sync request inserted.
    pub last_pos: Sector,
}

/// Statistics of all processes. They predict the behaviour of a new process.
#[derive(Clone, Debug, Default)]
pub(super) struct Global {
    /// Probability, times 256, that a process exits before its first think-time sample.
    pub exit_prob: u64,
    /// Probability, times 256, that after the exit of a process no other process reads near its
    /// position.
    pub no_coop: u64,
    /// Decaying sum of the first think times of new processes, in jiffies times 256.
    pub new_tt_total: u64,
    /// Mean of the first think times, in jiffies.
    pub new_tt_mean: u64,
    /// Decaying sum of the first seek distances of new processes, in sectors times 256.
    pub new_seek_total: u64,
    /// Mean of the first seek distances, in sectors.
    pub new_seek_mean: u64,
}

impl Context {
    /// `as_update_iohist`: updates the statistics when a sync request of this process is inserted,
    /// or when another process reads near its position.
    pub fn history(&mut self, all: &mut Global, hz: u64, now_j: u64, start: Sector, end: Sector) {
        if self.io_started || self.io_running {
            let mut think_j = 0;
            if self.io_running && self.queued + self.dispatched == 0 {
                let cap_j = (hz / 50).saturating_sub(1);
                think_j = now_j.saturating_sub(self.last_end_j).min(cap_j);
            }
            self.think(all, think_j);
            self.seek(all, start.distance(self.last_pos));
        }
        self.last_pos = end;
        self.io_started = true;
    }

    fn think(&mut self, all: &mut Global, think_j: u64) {
        if self.tt_samples == 0 {
            all.new_tt_total = decay(all.new_tt_total, ONE * think_j);
            all.new_tt_mean = all.new_tt_total / ONE;
            all.exit_prob = decay(all.exit_prob, 0);
        }
        self.tt_samples = decay(self.tt_samples, ONE);
        self.tt_total = decay(self.tt_total, ONE * think_j);
        self.tt_mean = (self.tt_total + 128) / self.tt_samples;
    }

    fn seek(&mut self, all: &mut Global, distance: u64) {
        if self.seek_samples == 0 {
            all.new_seek_total = decay(all.new_seek_total, ONE * distance);
            all.new_seek_mean = all.new_seek_total / ONE;
        }
        // The cap limits the effect of one distant request on the mean. The cap is larger for a new
        // process.
        let room = if self.seek_samples <= 60 {
            1 << 21
        } else {
            1 << 17
        };
        let distance = distance.min(4 * self.seek_mean + room);
        self.seek_samples = decay(self.seek_samples, ONE);
        self.seek_total = decay(self.seek_total, ONE * distance);
        self.seek_mean = (self.seek_total + self.seek_samples / 2) / self.seek_samples;
    }

    /// Records that a sync request of this process completed or was merged into another request.
    pub fn ended(&mut self, now_j: u64) {
        self.io_running = true;
        self.last_end_j = now_j;
    }
}

/// The contexts of one queue.
#[derive(Debug, Default)]
pub(super) struct ContextTable {
    all: Vec<Context>,
    free: Vec<Ctx>,
    /// Indices into `all`, by the index of the layer's io context.
    by_ioc: Side<Option<Ctx>>,
}

impl std::ops::Index<Ctx> for ContextTable {
    type Output = Context;
    fn index(&self, c: Ctx) -> &Context {
        &self.all[c as usize]
    }
}
impl std::ops::IndexMut<Ctx> for ContextTable {
    fn index_mut(&mut self, c: Ctx) -> &mut Context {
        &mut self.all[c as usize]
    }
}

impl ContextTable {
    /// Returns the context that belongs to an io context of the layer, and creates it if needed.
    pub fn get_or_create(&mut self, ioc: IocId, alive: bool) -> Ctx {
        if let Some(c) = *self.by_ioc.at(ioc.idx()) {
            return c;
        }
        let fresh = Context {
            refs: 1,
            alive,
            ..Context::default()
        };
        let c = match self.free.pop() {
            Some(c) => {
                self.all[c as usize] = fresh;
                c
            }
            None => {
                self.all.push(fresh);
                (self.all.len() - 1) as Ctx
            }
        };
        *self.by_ioc.at(ioc.idx()) = Some(c);
        c
    }
    /// Marks the process as exited. Its statistics stay until nothing refers to them.
    pub fn exit(&mut self, ioc: IocId) {
        if let Some(c) = *self.by_ioc.at(ioc.idx()) {
            self[c].alive = false;
        }
    }
    /// Removes the link to an io context whose index the layer will reuse.
    pub fn release(&mut self, ioc: IocId) {
        if let Some(c) = self.by_ioc.at(ioc.idx()).take() {
            self[c].alive = false;
            self.put(c);
        }
    }
    /// Adds a reference to context `c`.
    pub fn get(&mut self, c: Ctx) {
        self[c].refs += 1;
    }
    /// Drops a reference to context `c`. Frees `c` if it was the last one.
    pub fn put(&mut self, c: Ctx) {
        let x = &mut self[c];
        x.refs -= 1;
        if x.refs == 0 {
            self.free.push(c);
        }
    }
    /// Returns the contexts that have references.
    pub fn iter(&self) -> impl Iterator<Item = &Context> + '_ {
        self.all.iter().filter(|c| c.refs > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample counter takes the values 0, 32, 60, 84, ... and its limit is 249. The first mean
    /// is too high: 2 jiffies give 6, 3 give 7, and 19 give 23.
    #[test]
    fn sample_counter_and_first_means_match_the_kernel() {
        for (think_j, mean_j) in [(2, 6), (3, 7), (19, 23)] {
            let (mut c, mut all) = (Context::default(), Global::default());
            c.think(&mut all, think_j);
            assert_eq!(c.tt_mean, mean_j);
        }
        let (mut c, mut all) = (Context::default(), Global::default());
        let mut seen = Vec::new();
        for _ in 0..100 {
            c.think(&mut all, 0);
            seen.push(c.tt_samples);
        }
        assert_eq!(seen[..10], [32, 60, 84, 105, 123, 139, 153, 165, 176, 186]);
        assert_eq!(seen[99], 249);
    }

    #[test]
    fn far_first_seek_is_capped_only_in_the_mean_of_the_process() {
        let (mut c, mut all) = (Context::default(), Global::default());
        c.history(&mut all, 1000, 5, Sector(0), Sector(8));
        assert_eq!(c.seek_samples, 0, "the first request is no sample");
        c.history(&mut all, 1000, 6, Sector(80_000_008), Sector(80_000_016));
        assert_eq!(all.new_seek_mean, 10_000_000);
        assert_eq!(c.seek_mean, ((1 << 21) * 32 + 16) / 32);
    }

    #[test]
    fn dead_context_is_kept_while_it_is_referenced() {
        let mut t = ContextTable::default();
        let c = t.get_or_create(IocId(3), true);
        t.get(c);
        t.exit(IocId(3));
        t.release(IocId(3));
        let d = t.get_or_create(IocId(3), true);
        assert_ne!(c, d, "the index is reused, the context is not");
        assert!(!t[c].alive && t[d].alive);
        t.put(c);
        assert_eq!(t.get_or_create(IocId(4), true), c, "now it is free");
    }
}
